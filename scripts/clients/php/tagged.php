<?php
/* SPDX-License-Identifier: BSD-3-Clause */
namespace Mclistd;

/** A pipeline that takes plain items as well. */
class Packet extends Pipeline
{
    /** [value, unique number of this value], or null. */
    public function gets(string $key): ?array
    {
        $shape = function ($answer) {
            if (!is_array($answer)) throw new \UnexpectedValueException("'$answer' is no answer to this");
            return $answer ? [$answer[0][1], $answer[0][0][4] ?? '0'] : null;
        };
        return $this->do($shape, $this->line('gets', $key) . "\r\n");
    }

    /** $verb: set, add, or cas with a unique number. */
    public function store(string $verb, string $key, string $value, int $exptime, string $unique = ''): ?bool
    {
        $behind = rtrim(strlen($value) . " $unique");
        return $this->do('done', $this->line($verb, $key) . " 0 $exptime $behind\r\n$value\r\n");
    }

    public function delete(string $key): ?bool { return $this->do('done', $this->line('delete', $key) . "\r\n"); }
}

/**
 * Plain items under tags, for adapters of frameworks. A tag is a list: first its generation, a name
 * that is never used again, then the keys of its items. An item begins with the generations under
 * which it was made, and is there only as long as its lists begin with the same ones. So a purge
 * needs no luck, and where memcached loses a list its items are missed.
 *
 * A key leaves its list by itself, a minute behind its item: so tagged items have a time to live.
 * Keys and tags are what key() makes. Methods throw Lost while the proxy does not answer.
 */
class Tagged
{
    private const DOWN_S = 1; /* the proxy is left alone so long when it has not answered */
    private const SLACK_S = 60; /* clocks of proxies may differ by so much */
    private const RELATIVE_S = 2592000; /* what is longer is a date to memcached */
    private const STORE_S = 600; /* what get() has seen longer ago is asked for again to store */
    private const ROUNDS = 5;

    private float $downUntil = 0;
    private array $known = []; /* tag => [its generation, when it was read] */

    /** $longest: seconds, of tagged items that have no time to live of their own. $remember: for so
     *  many seconds get() asks for no generation again, and what is stored is under the generation
     *  that get() has seen last. So what is read from a database between the two, and is purged
     *  meanwhile, is not found. */
    public function __construct(private Lists $lists, private int $longest = self::RELATIVE_S, private int $remember = 0) {}

    /** Of any text: no blank, no delimiter, 200 bytes at most. */
    public static function key(string $name): string
    {
        $key = str_replace('%3A', ':', rawurlencode($name));
        if ($key !== '' && strlen($key) <= 200) return $key;
        return substr($key, 0, 150) . '~' . strtr(rtrim(base64_encode(hash('sha256', $name, true)), '='), '+/', '-_');
    }

    /** key => value of those that are there. $tags: tags that are known, which spares a round trip. */
    public function get(array $keys, array $tags = []): array
    {
        $live = array_filter($this->read($keys, $tags, $this->remember), fn($entry) => $entry['live']);
        if ($this->remember) $this->generations($tags);
        return array_map(fn($entry) => $entry['value'], $live);
    }

    /** $values: key => value; $tags: key => its tags; $watched: lists of all of them that hold no
     *  keys. $seconds: 0: $longest if it has tags, else no end. Returns the keys that are not
     *  stored, or not known to be. */
    public function set(array $values, array $tags, int $seconds, array $watched = []): array
    {
        $generations = $this->generations(array_merge($watched, ...array_values($tags)));
        $packet = new Packet($this->lists);
        $failed = $of = $stored = [];
        foreach ($values as $key => $value) {
            $names = $tags[$key] ?? [];
            $made = $this->made(array_merge($names, $watched), $generations);
            if ($made === null) {
                $failed[] = (string) $key;
                continue;
            }
            $stored[$key] = [$made, $names ? $this->lifetime($seconds) : $seconds];
            $of = array_merge($of, $this->name($packet, (string) $key, $names, $seconds));
        }
        foreach ($stored as $key => [$made, $for]) {
            $of[] = (string) $key;
            $this->store($packet, 'set', (string) $key, $values[$key], $made, $for);
        }
        foreach ($this->run($packet) as $at => $result) {
            if ($result !== true) $failed[] = $of[$at];
        }
        return array_values(array_unique($failed));
    }

    /** $change gets the value, null if there is none, and gives [value, seconds] to store, null for
     *  the seconds to keep those it has; or null to leave it. Whether it was stored. */
    public function change(string $key, callable $change, array $tags, array $watched = []): bool
    {
        for ($round = 0; $round < self::ROUNDS; $round++) {
            $made = $this->made($all = array_merge($tags, $watched), $this->generations($all));
            $old = $this->read([$key], $all)[$key] ?? null;
            $new = $change($old && $old['live'] ? $old['value'] : null);
            if ($made === null || $new === null) return false;
            $seconds = $new[1] ?? ($old && $old['expires'] ? max(1, $old['expires'] - time()) : 0);
            $packet = new Packet($this->lists);
            $this->name($packet, $key, $tags, $seconds);
            $verb = $old ? 'cas' : 'add';
            $this->store($packet, $verb, $key, $new[0], $made, $tags ? $this->lifetime($seconds) : $seconds, $old['unique'] ?? '');
            $results = $this->run($packet);
            $stored = array_pop($results);
            if (array_filter($results, fn($named) => $named !== true) || $stored instanceof Error) return false;
            if ($stored) return true;
        }
        return false;
    }

    /** As change() where there is no value. */
    public function add(string $key, string $value, int $seconds, array $tags, array $watched = []): bool
    {
        $made = $this->made($all = array_merge($tags, $watched), $this->generations($all));
        if ($made === null) return false;
        $packet = new Packet($this->lists);
        $this->name($packet, $key, $tags, $seconds);
        $this->store($packet, 'add', $key, $value, $made, $tags ? $this->lifetime($seconds) : $seconds);
        if ($this->run($packet) === array_fill(0, count($tags) + 1, true)) return true;
        return $this->change($key, fn($old) => $old === null ? [$value, $seconds] : null, $tags, $watched);
    }

    /** Of each: true, false if it was not there, or an Error. */
    public function delete(array $keys): array
    {
        $packet = new Packet($this->lists);
        foreach ($keys as $key) $packet->delete((string) $key);
        return $keys ? array_combine($keys, $this->run($packet)) : [];
    }

    /** $tags: tag => keys that it is to hold no more. */
    public function untag(array $tags): bool
    {
        $packet = new Packet($this->lists);
        foreach ($tags as $tag => $keys) $packet->ldel((string) $tag, ...$keys);
        return !array_filter($this->run($packet), fn($result) => $result instanceof Error);
    }

    /** Deletes the items of each tag. Where that cannot be done, the list goes: its generation ends,
     *  and the items are missed. It is tried even if the proxy did not answer a moment ago. False:
     *  not done, or not known to be. */
    public function purge(array $tags): bool
    {
        $this->known = array_diff_key($this->known, array_flip($tags));
        $packet = new Packet($this->lists);
        foreach ($tags as $tag) $packet->lpurge($tag);
        $failed = array_filter($packet->run(), fn($result) => $result instanceof Error);
        return $this->drop(array_intersect_key($tags, $failed));
    }

    /** The items of each tag are missed from now on; their memory is not freed. */
    public function drop(array $tags): bool
    {
        $this->known = array_diff_key($this->known, array_flip($tags));
        $packet = new Packet($this->lists);
        foreach ($tags as $tag) $packet->ldrop($tag);
        return !array_filter($packet->run(), fn($result) => $result instanceof Error);
    }

    /** Remembers no generation. */
    public function forget(): void { $this->known = []; }

    /* --- generations --- */

    /** tag => its generation; those that cannot be had are left out. */
    private function generations(array $tags): array
    {
        $found = $this->remember ? $this->remembered($tags, self::STORE_S) : [];
        $tags = array_values(array_diff(array_unique($tags), array_keys($found)));
        for ($round = 0; $tags && $round < self::ROUNDS; $round++) {
            [$firsts, $tags] = [$this->firsts($tags), []];
            $packet = new Packet($this->lists);
            foreach ($firsts as $tag => $first) {
                if ($this->isGeneration($first)) {
                    $found[$tag] = $first;
                    continue;
                }
                /* A key that was added while a purge was at work, or what cannot be read. */
                if ($first instanceof Error) $packet->ldrop((string) $tag);
                elseif ($first !== null) $packet->lpurge((string) $tag);
                $packet->lcreate((string) $tag, 'gen:' . bin2hex(random_bytes(8)));
                $tags[] = (string) $tag;
            }
            if ($tags) $this->run($packet);
        }
        return $found;
    }

    /** $age: seconds since they were read, at most. */
    private function remembered(array $tags, ?int $age = null): array
    {
        $known = array_intersect_key($this->known, array_flip($tags));
        return array_map(fn($entry) => $entry[0], array_filter($known, fn($entry) => $age === null || $entry[1] > microtime(true) - $age));
    }

    /** tag => the first item of its list, null, or an Error. */
    private function firsts(array $tags): array
    {
        $packet = new Packet($this->lists);
        foreach ($tags as $tag) $packet->lrange($tag, 0, 0);
        return $tags ? $this->answered($tags, $this->run($packet)) : [];
    }

    private function answered(array $tags, array $answers): array
    {
        $firsts = $tags ? array_combine($tags, array_map(fn($answer) => $answer instanceof Error ? $answer : $answer[0] ?? null, $answers)) : [];
        if ($this->remember) {
            $known = array_filter($firsts, [$this, 'isGeneration']);
            $this->known = array_map(fn($first) => [$first, microtime(true)], $known) + array_diff_key($this->known, $firsts);
        }
        return $firsts;
    }

    private function isGeneration($first): bool { return is_string($first) && strncmp($first, 'gen:', 4) === 0; }

    /** What an item begins with: tag, generation, ...; null: one of them is not known. */
    private function made(array $tags, array $generations): ?array
    {
        $made = [];
        foreach ($tags as $tag) {
            if (!isset($generations[$tag])) return null;
            array_push($made, $tag, $generations[$tag]);
        }
        return $made;
    }

    /* --- items: the time of their end and what they were made under, a line end, the value --- */

    private function read(array $keys, array $tags, ?int $age = null): array
    {
        $firsts = $this->remember ? $this->remembered($tags, $age) : [];
        $tags = array_values(array_diff($tags, array_keys($firsts)));
        $packet = new Packet($this->lists);
        foreach ($tags as $tag) $packet->lrange($tag, 0, 0);
        foreach ($keys as $key) $packet->gets((string) $key);
        $results = $this->run($packet);
        $firsts += $this->answered($tags, array_splice($results, 0, count($tags)));
        $entries = [];
        foreach ($keys as $at => $key) {
            if (is_array($results[$at])) $entries[$key] = $this->entry(...$results[$at]);
        }
        $made = array_merge(...array_values(array_column($entries, 'made')));
        $firsts += $this->firsts(array_values(array_diff(array_unique(array_column($made, 0)), array_keys($firsts))));
        foreach ($entries as &$entry) {
            foreach ($entry['made'] as [$tag, $generation]) $entry['live'] = $entry['live'] && ($firsts[$tag] ?? null) === $generation;
        }
        return $entries;
    }

    private function entry(string $data, string $unique): array
    {
        [$line, $value] = explode("\n", $data, 2) + [1 => null];
        $known = $value !== null && preg_match('/^\d+( [^ ]+ gen:[^ ]+)*$/D', $line) === 1;
        $words = explode(' ', $known ? $line : '0');
        $expires = (int) array_shift($words);
        return ['value' => $value, 'unique' => $unique, 'expires' => $expires, 'made' => array_chunk($words, 2), 'live' => $known];
    }

    private function lifetime(int $seconds): int { return $seconds > 0 ? $seconds : $this->longest; }

    /** Adds the key to each tag; returns it as often. */
    private function name(Packet $packet, string $key, array $tags, int $seconds): array
    {
        foreach ($tags as $tag) $packet->laddt($tag, $this->lifetime($seconds) + self::SLACK_S, $key);
        return array_fill(0, count($tags), $key);
    }

    private function store(Packet $packet, string $verb, string $key, string $value, array $made, int $seconds, string $unique = ''): void
    {
        $expires = $seconds > 0 ? time() + $seconds : 0;
        $exptime = $seconds > self::RELATIVE_S ? $expires : max(0, $seconds);
        $packet->store($verb, $key, implode(' ', [$expires, ...$made]) . "\n$value", $exptime, $unique);
    }

    /* --- the proxy --- */

    private function run(Packet $packet): array
    {
        if (microtime(true) < $this->downUntil) throw new Lost('nothing was sent: the proxy did not answer a moment ago');
        $results = $packet->run();
        $last = end($results);
        if (!$last instanceof Lost) return $results;
        $this->downUntil = microtime(true) + self::DOWN_S;
        throw $last;
    }
}
