<?php
/* SPDX-License-Identifier: BSD-3-Clause */
/* What WordPress expects of its object cache, and what is of this one alone. With CORE in the
 * environment WordPress' own cache is asked what it does. */
require __DIR__ . '/wordpress_load.php';

use Mclistd\{Lists, Packet, Tagged};

class WordPressTest extends PHPUnit\Framework\TestCase
{
    public function setUp(): void
    {
        wp_cache_flush();
        wp_cache_flush_group('g');
        $this->next();
    }

    /** As another request sees it. */
    private function next(): void
    {
        if (getenv('CORE')) return;
        wp_cache_init();
        wp_cache_add_global_groups(['users']);
        wp_cache_add_non_persistent_groups(['counts']);
    }

    private function onlyOurs(): void
    {
        if (getenv('CORE')) $this->markTestSkipped();
    }

    /* --- any cache --- */

    public function testItIsTheOne() { $this->assertSame(!getenv('CORE'), (bool) wp_using_ext_object_cache()); }

    public function testMiss()
    {
        $this->assertFalse(wp_cache_get('missing', 'g', false, $found));
        $this->assertFalse($found);
    }

    public function testValuesOfAllTypes()
    {
        $values = ['text', '', 0, 1, -5, 1.5, true, false, null, [], ['a' => [1]], (object) ['a' => 1], "a\r\nEND\r\n\0", str_repeat('x', 300000)];
        foreach ($values as $number => $value) $this->assertTrue(wp_cache_set("k$number", $value, 'g'));
        $this->next();
        foreach ($values as $number => $value) {
            $this->assertEquals($value, wp_cache_get("k$number", 'g', false, $found));
            $this->assertTrue($found, "$number");
        }
    }

    public function testAdd()
    {
        $this->assertTrue(wp_cache_add('k', 1, 'g'));
        $this->next();
        $this->assertFalse(wp_cache_add('k', 2, 'g'));
        $this->assertSame(1, wp_cache_get('k', 'g'));
        $this->assertSame(['k' => false, 'l' => true], wp_cache_add_multiple(['k' => 3, 'l' => 4], 'g'));
        wp_suspend_cache_addition(true);
        $this->assertFalse(wp_cache_add('m', 1, 'g'));
        wp_suspend_cache_addition(false);
    }

    public function testReplace()
    {
        $this->assertFalse(wp_cache_replace('k', 1, 'g'));
        $this->assertFalse(wp_cache_get('k', 'g'));
        wp_cache_set('k', 1, 'g');
        $this->next();
        $this->assertTrue(wp_cache_replace('k', 2, 'g'));
        $this->next();
        $this->assertSame(2, wp_cache_get('k', 'g'));
    }

    public function testDelete()
    {
        wp_cache_set('k', 1, 'g');
        $this->next();
        $this->assertTrue(wp_cache_delete('k', 'g'));
        $this->assertFalse(wp_cache_get('k', 'g'));
        $this->assertFalse(wp_cache_delete('k', 'g'));
        wp_cache_set('a', 1, 'g');
        $this->assertSame(['a' => true, 'b' => false], wp_cache_delete_multiple(['a', 'b'], 'g'));
    }

    public function testMultiple()
    {
        $this->assertSame(['a' => true, 7 => true], wp_cache_set_multiple(['a' => 1, 7 => 2], 'g'));
        $this->next();
        $this->assertSame(['a' => 1, 'b' => false, 7 => 2], wp_cache_get_multiple(['a', 'b', 7], 'g'));
        $this->assertSame([], wp_cache_get_multiple([], 'g'));
        $this->assertSame([], wp_cache_set_multiple([], 'g'));
    }

    public function testIncrAndDecr()
    {
        $this->assertFalse(wp_cache_incr('n', 1, 'g'));
        wp_cache_set('n', 5, 'g', 100);
        $this->next();
        $this->assertSame(6, wp_cache_incr('n', 1, 'g'));
        $this->assertSame(16, wp_cache_incr('n', 10, 'g'));
        $this->next();
        $this->assertSame(15, wp_cache_decr('n', 1, 'g'));
        $this->assertSame(0, wp_cache_decr('n', 100, 'g'));
        wp_cache_set('t', 'text', 'g');
        $this->assertSame(2, wp_cache_incr('t', 2, 'g'));
    }

    public function testObjectsAreCopies()
    {
        $object = (object) ['a' => 1];
        wp_cache_set('o', $object, 'g');
        $object->a = 2;
        $got = wp_cache_get('o', 'g');
        $this->assertSame(1, $got->a);
        $got->a = 3;
        $this->assertSame(1, wp_cache_get('o', 'g')->a);
    }

    public function testGroupsAreApart()
    {
        wp_cache_set('k', 1, 'a');
        wp_cache_set('k', 2, 'b');
        wp_cache_set('k', 3);
        $this->next();
        $this->assertSame([1, 2, 3, 3], [wp_cache_get('k', 'a'), wp_cache_get('k', 'b'), wp_cache_get('k'), wp_cache_get('k', 'default')]);
        $this->assertTrue(wp_cache_flush_group('a'));
        $this->next();
        $this->assertSame([false, 2, 3], [wp_cache_get('k', 'a'), wp_cache_get('k', 'b'), wp_cache_get('k')]);
    }

    public function testFlush()
    {
        foreach (['g', 'users', ''] as $group) wp_cache_set('k', 1, $group);
        $this->assertTrue(wp_cache_flush());
        $this->next();
        foreach (['g', 'users', ''] as $group) $this->assertFalse(wp_cache_get('k', $group));
        wp_cache_set('k', 2, 'g');
        $this->next();
        $this->assertSame(2, wp_cache_get('k', 'g'));
    }

    public function testInvalidKeys()
    {
        foreach (['', ' ', null, false, 1.5] as $key) {
            $calls = [fn() => wp_cache_add($key, 1, 'g'), fn() => wp_cache_set($key, 1, 'g'), fn() => wp_cache_get($key, 'g'),
                fn() => wp_cache_delete($key, 'g'), fn() => wp_cache_incr($key, 1, 'g'), fn() => wp_cache_replace($key, 1, 'g')];
            foreach ($calls as $call) $this->assertFalse(@$call());
        }
    }

    public function testSupports()
    {
        foreach (['add_multiple', 'set_multiple', 'get_multiple', 'delete_multiple', 'flush_runtime', 'flush_group'] as $feature) {
            $this->assertTrue(wp_cache_supports($feature));
        }
        $this->assertFalse(wp_cache_supports('other'));
        foreach (get_defined_functions()['user'] as $name) {
            if (strpos($name, 'wp_cache_') === 0) $this->assertStringEndsNotWith('compat.php', (new ReflectionFunction($name))->getFileName(), $name);
        }
    }

    /* --- this one --- */

    private function lists(): Lists { return new Lists(getenv('PROXY')); }
    private function group(string $name): string { return "wp::wp_:group:1:$name"; }

    public function testAGroupsItemsLeaveTheMemory()
    {
        $this->onlyOurs();
        wp_cache_set('k', 1, 'g');
        [$generation, $key] = $this->lists()->lget($this->group('g'));
        $this->assertNotNull($this->stored($key));
        wp_cache_flush_group('g');
        $this->assertNull($this->stored($key));
    }

    private function stored(string $key): ?array
    {
        $packet = new Packet($this->lists());
        $packet->gets($key);
        return $packet->run()[0];
    }

    public function testItemsOfALostGroupAreMissed()
    {
        $this->onlyOurs();
        wp_cache_set('k', 1, 'g');
        $this->assertTrue($this->lists()->ldrop($this->group('g')));
        $this->next();
        $this->assertFalse(wp_cache_get('k', 'g'));
        $this->assertFalse(wp_cache_replace('k', 2, 'g'));
        $this->assertFalse(wp_cache_incr('k', 2, 'g'));
        $this->assertTrue(wp_cache_add('k', 3, 'g'));
        $this->next();
        $this->assertSame(3, wp_cache_get('k', 'g'));
    }

    /** The request has read the database before the group is flushed by another, and stores behind it. */
    public function testWhatWasReadBeforeAFlushIsNotFoundBehindIt()
    {
        $this->onlyOurs();
        foreach (['wp_cache_set', 'wp_cache_add'] as $store) {
            $this->assertFalse(wp_cache_get("k $store", 'g'));
            $this->lists()->lpurge($this->group('g'));
            $store("k $store", 'old', 'g');
            $this->next();
            $this->assertFalse(wp_cache_get("k $store", 'g'));
            wp_cache_set("k $store", 'new', 'g');
            $this->next();
            $this->assertSame('new', wp_cache_get("k $store", 'g'));
        }
    }

    public function testTimesToLive()
    {
        $this->onlyOurs();
        wp_cache_set('short', 1, 'g', 1);
        wp_cache_set('long', 1, 'g', 86400 * 60);
        wp_cache_set('n', 1, 'g', 100);
        wp_cache_incr('n', 1, 'g');
        $items = array_slice($this->lists()->lget($this->group('g')), 1);
        $times = array_map(fn($key) => $this->lists()->lttl($this->group('g'), $key), $items);
        $this->assertGreaterThan(86400 * 60, $times[1]);
        $this->assertLessThanOrEqual(160, $times[2]);
        for ($tries = 0; $tries < 200 && wp_cache_get('short', 'g', true); $tries++) usleep(100000);
        $this->assertFalse(wp_cache_get('short', 'g', true));
        $this->assertSame([1, 2], [wp_cache_get('long', 'g', true), wp_cache_get('n', 'g', true)]);
    }

    public function testTwoThatCountAtOnceLoseNothing()
    {
        $this->onlyOurs();
        wp_cache_set('n', 0, 'g');
        $key = $this->lists()->lget($this->group('g'))[1];
        $meanwhile = new Tagged($this->lists());
        $tags = [[$this->group('g')], ['wp::wp_:all']];
        $one = new Tagged($this->lists());
        $done = false;
        $one->change($key, function ($old) use ($meanwhile, $key, $tags, &$done) {
            if (!$done) $done = $meanwhile->change($key, fn($old) => [serialize(unserialize($old) + 1), null], ...$tags);
            return [serialize(unserialize($old) + 1), null];
        }, ...$tags);
        $this->assertSame(2, wp_cache_get('n', 'g', true));
    }

    public function testGroupsOfOneRequestAlone()
    {
        $this->onlyOurs();
        $this->assertTrue(wp_cache_set('k', 1, 'counts'));
        $this->assertSame([1, 2], [wp_cache_get('k', 'counts'), wp_cache_incr('k', 1, 'counts')]);
        $this->next();
        $this->assertFalse(wp_cache_get('k', 'counts'));
    }

    public function testSitesAreApartButForGlobalGroups()
    {
        $this->onlyOurs();
        (new ReflectionProperty('WP_Object_Cache', 'multisite'))->setValue($GLOBALS['wp_object_cache'], true);
        foreach ([1, 2] as $blog) {
            wp_cache_switch_to_blog($blog);
            wp_cache_set('k', $blog, 'g');
            wp_cache_set('k', $blog, 'users');
        }
        $this->assertTrue(wp_cache_flush_group('g'));
        $values = [];
        foreach ([1, 2] as $blog) {
            wp_cache_switch_to_blog($blog);
            array_push($values, wp_cache_get('k', 'g', true), wp_cache_get('k', 'users', true));
        }
        $this->assertSame([1, 2, false, 2], $values);
    }

    public function testKeysAndGroupsOfAnyLetters()
    {
        $this->onlyOurs();
        $names = [['a:b', 'c'], ['a', 'b:c'], ['a,b c', "\u{fc}\n"], [str_repeat('g', 300), str_repeat('k', 300)], [str_repeat('g', 300), str_repeat('k', 301)], ['%', '%25']];
        foreach ($names as $number => [$group, $key]) wp_cache_set($key, $number, $group);
        $this->next();
        foreach ($names as $number => [$group, $key]) $this->assertSame($number, wp_cache_get($key, $group));
        wp_cache_flush_group('a,b c');
        $this->next();
        $this->assertSame([1, false], [wp_cache_get('b:c', 'a'), wp_cache_get("\u{fc}\n", 'a,b c')]);
    }

    /** Nothing listens there. */
    public function testAProxyThatIsDownLeavesACacheOfTheRequest()
    {
        $this->onlyOurs();
        $store = new ReflectionProperty('WP_Object_Cache', 'store');
        $store->setValue($GLOBALS['wp_object_cache'], new Tagged(new Lists('127.0.0.1:1')));
        $this->assertFalse(wp_cache_get('k', 'g'));
        $this->assertFalse(wp_cache_set('k', 1, 'g'));
        $this->assertSame(1, wp_cache_get('k', 'g'));
        $this->assertFalse(wp_cache_add('l', 1, 'g') || wp_cache_delete('l', 'g') || wp_cache_replace('k', 2, 'g'));
        $this->assertFalse(wp_cache_flush_group('g') || wp_cache_flush());
        $this->next();
    }
}
