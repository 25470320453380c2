<?php
/* SPDX-License-Identifier: BSD-3-Clause */
/* The PSR-6 tests of php-cache-integration-tests, which Symfony runs for its own adapters, and what
 * Symfony expects of tags. PROXY is the address of a daemon that runs. */
require_once 'Cache/IntegrationTests/autoload.php';
require_once 'Symfony/Component/Cache/autoload.php';
foreach (['mclistd.php', 'tagged.php', 'symfony/TagAwareAdapter.php'] as $file) {
    require_once getenv('CLIENTS') . "/php/$file";
}

use Mclistd\{Lists, Refused, Symfony\TagAwareAdapter};
use Symfony\Component\Cache\Adapter\AbstractTagAwareAdapter;

class SymfonyTest extends Cache\IntegrationTests\CachePoolTest
{
    private function pool(string $namespace = 'test', int $lifetime = 0): TagAwareAdapter
    {
        return new TagAwareAdapter(new Lists(getenv('PROXY')), $namespace, $lifetime);
    }

    private function save($pool, string $key, $value, array $tags, ?int $seconds = null): bool
    {
        return $pool->save($pool->getItem($key)->set($value)->tag($tags)->expiresAfter($seconds));
    }

    public function createCachePool() { return $this->pool(); }

    public function testItemsExpire()
    {
        $this->assertTrue($this->save($this->cache, 'short', 1, ['t'], 1));
        $this->assertTrue($this->save($this->cache, 'long', 1, ['t'], 86400 * 60));
        for ($tries = 0; $this->cache->hasItem('short') && $tries < 100; $tries++) usleep(100000);
        $this->assertFalse($this->cache->getItem('short')->isHit());
        $this->assertTrue($this->cache->hasItem('long'));
    }

    public function testInvalidateTags()
    {
        foreach ([['k0', ['foo']], ['k1', ['foo', 'bar']], ['k2', ['bar']], ['k3', []]] as [$key, $tags]) {
            $this->assertTrue($this->save($this->cache, $key, $key, $tags));
        }
        $this->assertTrue($this->cache->invalidateTags(['foo', 'unknown']));
        $hits = array_map(fn($item) => $item->isHit(), iterator_to_array($this->cache->getItems(['k0', 'k1', 'k2', 'k3'])));
        $this->assertEquals(['k0' => false, 'k1' => false, 'k2' => true, 'k3' => true], $hits);
        $this->assertFalse($this->cache->invalidateTags([]));
        $this->assertTrue($this->save($this->pool(), 'k1', 'new', ['foo']));
        $this->assertSame('new', $this->pool()->getItem('k1')->get());
    }

    public function testTagsAreCleanedOnSave()
    {
        $this->save($this->cache, 'k', 1, ['foo']);
        $this->save($this->cache, 'k', 2, ['bar']);
        $this->cache->invalidateTags(['foo']);
        $this->assertSame(2, $this->cache->getItem('k')->get());
    }

    public function testTagsAreCleanedOnDelete()
    {
        $this->save($this->cache, 'k', 1, ['foo']);
        $this->assertTrue($this->cache->deleteItem('k'));
        $this->cache->save($this->cache->getItem('k')->set(2));
        $this->cache->invalidateTags(['foo']);
        $this->assertTrue($this->cache->hasItem('k'));
    }

    /** The base class adds only those that the fetched item lacked. */
    public function testASaveAddsTheTagsThatAPurgeHasTakenOffMeanwhile()
    {
        $this->save($this->cache, 'k', 1, ['foo']);
        $item = $this->cache->getItem('k');
        $this->pool()->invalidateTags(['foo']);
        $this->cache->save($item->set(2)->tag('foo'));
        $this->assertSame(2, $this->cache->getItem('k')->get());
        $this->assertContains(1, array_map([$this, 'named'], $this->lists()), 'the key is in the list');
        $this->pool()->invalidateTags(['foo']);
        $this->assertFalse($this->cache->hasItem('k'));
    }

    private function lists(): array
    {
        $prefix = rawurlencode((new ReflectionClassConstant(AbstractTagAwareAdapter::class, 'TAGS_PREFIX'))->getValue());
        $version = (new ReflectionProperty(AbstractTagAwareAdapter::class, 'namespaceVersion'))->getValue($this->cache);
        return ['test:' . rawurlencode(rtrim($version, ':')) . ":{$prefix}foo"];
    }

    private function named(string $list): int { return (new Lists(getenv('PROXY')))->llen($list) - 1; }

    public function testTagsAndKeysOfAnyLetters()
    {
        $this->save($this->cache, $key = str_repeat("a,b c\n\u{fc}%", 60), 'long', $tags = ["\u{fc} ,;", str_repeat('x', 5000)]);
        $this->save($this->cache, str_repeat("a,b c\n\u{fc}%", 61), 'longer', []);
        $this->assertSame('long', $this->cache->getItem($key)->get());
        $this->assertSame($tags, array_values($this->cache->getItem($key)->getMetadata()['tags']));
        $this->cache->invalidateTags([str_repeat('x', 5001), "\u{fc} ,"]);
        $this->assertTrue($this->cache->hasItem($key));
        $this->cache->invalidateTags([str_repeat('x', 5000)]);
        $this->assertFalse($this->cache->hasItem($key));
    }

    public function testNamespacesAreApart()
    {
        $this->save($this->cache, 'k', 1, ['foo']);
        $other = $this->pool('other');
        $this->save($other, 'k', 2, ['foo']);
        $other->invalidateTags(['foo']);
        $this->assertTrue($this->cache->hasItem('k'));
        $this->save($other, 'k', 3, ['foo']);
        $this->assertTrue($this->cache->clear());
        $this->assertSame([false, true], [$this->pool()->hasItem('k'), $this->pool('other')->hasItem('k')]);
    }

    public function testGetOfTheContract()
    {
        $make = function ($item) {
            $item->tag(['user 7'])->expiresAfter(60);
            return ['page' => $item->getKey()];
        };
        $this->assertSame(['page' => 'p'], $this->cache->get('p', $make));
        $this->assertSame(['page' => 'p'], $this->pool()->get('p', fn() => $this->fail()));
        $this->pool()->invalidateTags(['user 7']);
        $this->assertSame(1, $this->cache->get('p', fn() => 1));
    }

    /** As a memcached that was started anew: the items of the others are there, no list names them. */
    public function testItemsOfALostTagAreMissed()
    {
        $this->save($this->cache, 'k', 1, ['foo', 'bar']);
        $this->assertTrue((new Lists(getenv('PROXY')))->ldrop($this->lists()[0]));
        $this->assertFalse($this->cache->hasItem('k'));
        $this->save($this->cache, 'k', 2, ['foo', 'bar']);
        $this->assertSame(2, $this->cache->getItem('k')->get());
    }

    /** A key that was added while a purge was at work stands where the generation is looked for. */
    public function testAListWithoutAGenerationIsPurgedAndBegunAnew()
    {
        $this->cache->hasItem('k');
        (new Lists(getenv('PROXY')))->ladd($this->lists()[0], 'stray');
        $this->assertTrue($this->save($this->cache, 'k', 1, ['foo']));
        $this->assertTrue($this->cache->hasItem('k'));
    }

    public function testKeysLeaveAListBehindTheirItems()
    {
        $this->save($this->cache, 'k', 1, ['foo'], 100);
        [$list] = $this->lists();
        $lists = new Lists(getenv('PROXY'));
        [$generation, $key] = $lists->lget($list);
        $this->assertSame(-1, $lists->lttl($list, $generation));
        $this->assertGreaterThan(100, $lists->lttl($list, $key));
        $this->save($this->cache, 'k', 1, ['foo']);
        $this->assertGreaterThan(2000000, $lists->lttl($list, $key), 'without a time: thirty days');
    }

    public function testAnItemOfAnotherProgramIsMissed()
    {
        $this->save($this->cache, 'k', 1, []);
        $key = (new ReflectionMethod($this->cache, 'getId'))->invoke($this->cache, 'k');
        foreach (['', 'text', "x\ny", "0 tag\ny", "0\nno serialised value"] as $value) {
            $packet = new Mclistd\Packet(new Lists(getenv('PROXY')));
            $packet->store('set', Mclistd\Tagged::key($key), $value, 0);
            $this->assertSame([true], $packet->run());
            $this->assertFalse(@$this->cache->getItem('k')->isHit(), $value);
        }
    }

    public function testAProxyThatIsDownIsAMiss() { $this->misses(new Lists('127.0.0.1:1')); /* nothing listens there */ }

    public function testAMemcachedThatIsDownIsAMiss()
    {
        $this->misses(new class extends Lists {
            protected function runAll(array $calls): array
            {
                return array_map(fn() => new Refused('SERVER_ERROR backend 10.0.0.3:11211 down'), $calls);
            }
        });
    }

    private function misses(Lists $lists): void
    {
        $pool = new TagAwareAdapter($lists);
        $this->assertFalse($pool->getItem('k')->isHit());
        $this->assertFalse($pool->hasItem('k'));
        $this->assertFalse($this->save($pool, 'k', 1, ['foo']));
        $this->assertFalse($this->save($pool, 'k', 1, []));
        $this->assertFalse($pool->deleteItem('k'));
        $this->assertFalse($pool->invalidateTags(['foo']));
        $this->assertSame(5, $pool->get('k', fn() => 5));
    }

    public function testAProxyThatDoesNotAnswerIsLeftAloneForAWhile()
    {
        $server = stream_socket_server('tcp://127.0.0.1:0');
        $pool = new TagAwareAdapter(new Lists(stream_socket_get_name($server, false), timeout: 0.1));
        for ($tries = 0; $tries < 8; $tries++) $this->assertFalse($pool->getItem('k')->isHit());
        for ($asked = 0; @stream_socket_accept($server, 0); $asked++);
        $this->assertGreaterThan(0, $asked);
        $this->assertLessThan(8, $asked);
    }
}
