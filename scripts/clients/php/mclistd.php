<?php
/* SPDX-License-Identifier: BSD-3-Clause */
namespace Mclistd;

class Error extends \RuntimeException {}

/** The proxy's line of error. The connection goes on. */
class Refused extends Error {}

/** No answer, or none that can be read: the request may have been done. The connection is closed,
 *  and the next request makes a new one. */
class Lost extends Error {}

/**
 * The list verbs of mclistd: each is a method that has its name and takes its words.
 *
 *     $lists = new Mclistd\Lists('127.0.0.1:11220');
 *     $lists->ladd('followers:ann', 'bob', 'carol smith');
 *     $lists->lrevrange('followers:ann', 0, 9);         // ['carol smith', 'bob']
 *
 * A verb that answers with a word gives true, or false for NOT_STORED, NOT_FOUND and EXISTS. A
 * number is an int, and items are an array; null stands for NOT_FOUND or NOT_STORED in their place.
 * One connection, which the first request makes.
 */
class Lists
{
    private const BATCH_BYTES = 16384; /* of a pipeline, sent before its answers are read */
    private const LINE_BYTES_MAX = 65536;
    private const SAYS = ['STORED' => true, 'DELETED' => true, 'OK' => true, 'TOUCHED' => true,
        'NOT_STORED' => false, 'NOT_FOUND' => false, 'EXISTS' => false];
    private const LINES = ['ladd', 'ldel', 'lset', 'lrequire', 'lrefuse']; /* of a transaction */

    private $socket = null;

    /** $address: HOST:PORT, tls://HOST:PORT or unix:///PATH; $timeout: seconds for each wait;
     *  $login: 'USER PASSWORD'; $options: of stream_context_create(), for TLS. */
    public function __construct(private string $address = '127.0.0.1:11220',
        private float $timeout = 3.0, private string $delimiter = ',',
        private ?string $login = null, private array $options = []) {}

    /* --- changes --- */

    public function ladd(string $key, string ...$items): ?bool
    {
        return $this->do('done', $this->change('ladd', $key, $items));
    }

    public function laddt(string $key, int $seconds, string ...$items): ?bool
    {
        return $this->do('done', $this->change('laddt', $key, $items, " $seconds"));
    }

    public function ldel(string $key, string ...$items): ?bool
    {
        return $this->do('done', $this->change('ldel', $key, $items));
    }

    public function lset(string $key, string ...$items): ?bool { return $this->ask('done', 'lset', $key, ...$items); }
    public function lcreate(string $key, string ...$items): ?bool { return $this->ask('done', 'lcreate', $key, ...$items); }
    public function laddx(string $key, string ...$items): ?int { return $this->ask('number', 'laddx', $key, ...$this->some($items)); }
    public function ldelx(string $key, string ...$items): ?int { return $this->ask('number', 'ldelx', $key, ...$this->some($items)); }

    /** Items of any bytes. A token goes with an exptime. */
    public function lput(string $key, array $items, ?int $exptime = null, ?int $token = null, bool $new = false): ?bool
    {
        $block = implode('', array_map(fn($item) => 'ITEM x ' . $this->data($item), $items));
        $options = $this->options($exptime, $token, $new);
        return $this->do('done', $this->line('lputb', $key) . ' ' . strlen($block) . "$options\r\n$block\r\n");
    }

    public function lcopy(string $src, string $dst, ?int $exptime = null, bool $new = false): ?int
    {
        return $this->do('number', $this->line('lcopy', $src, $dst) . $this->options($exptime, null, $new) . "\r\n");
    }

    public function ltouch(string $key, int $exptime): ?bool { return $this->ask('done', 'ltouch', $key, $exptime); }
    public function ldrop(string $key): ?bool { return $this->ask('done', 'ldrop', $key); }
    public function lpurge(string $key): ?int { return $this->ask('number', 'lpurge', $key); }
    public function lcompact(string $key): ?bool { return $this->ask('done', 'lcompact', $key); }
    public function lconvert(string $key): ?int { return $this->ask('number', 'lconvert', $key); }
    public function lmigrate(string $key): ?bool { return $this->ask('done', 'lmigrate', $key); }

    /** The token; 0: another client has the lease; null: the list is there. */
    public function llease(string $key, int $seconds): ?int { return $this->ask('token', 'llease', $key, $seconds); }

    /* --- reads --- */

    public function lget(string $key): ?array { return $this->ask('items', 'lgetb', $key); }

    /** [items, version]; null: there are none. */
    public function lgets(string $key): ?array { return $this->ask('versioned', 'lgets', $key); }

    /** key => items, of one instant; a list that is missing is left out. */
    public function lgetx(string ...$keys): ?array { return $this->ask('each', 'lgetx', ...$this->some($keys)); }

    /** Those of the items that are in the list. */
    public function lhas(string $key, string ...$items): ?array
    {
        if (count($items) === 1) {
            return $this->do('whole', $this->line('lhasb', $key) . ' ' . $this->data(...$items));
        }
        return $this->ask('items', 'lhas', $key, ...$this->some($items));
    }

    public function llen(string $key): ?int { return $this->ask('number', 'llen', $key); }

    /** Seconds, -1 for never. */
    public function lttl(string $key, ?string $item = null): ?int
    {
        if ($item === null) return $this->ask('number', 'lttl', $key);
        return $this->do('number', $this->line('lttlb', $key) . ' ' . $this->data($item));
    }

    public function lrange(string $key, int $from, int $to): ?array { return $this->ask('items', 'lrange', $key, $from, $to); }
    public function lrevrange(string $key, int $from, int $to): ?array { return $this->ask('items', 'lrevrange', $key, $from, $to); }
    public function lafter(string $key, string $item, int $count): ?array { return $this->ask('items', 'lafter', $key, $item, $count); }
    public function lbefore(string $key, string $item, int $count): ?array { return $this->ask('items', 'lbefore', $key, $item, $count); }
    public function lrandom(string $key, int $count): ?array { return $this->ask('items', 'lrandomb', $key, $count); }
    public function lstat(string $key): ?array { return $this->ask('stats', 'lstat', $key); }

    /** The list in pages, from its oldest item or its newest. Each goes on behind the last item of
     *  the one before, or the one before that, if it has left the list meanwhile. */
    public function pages(string $key, int $count = 1000, bool $newest = false): \Generator
    {
        $page = $newest ? $this->lrevrange($key, 0, $count - 1) : $this->lrange($key, 0, $count - 1);
        while ($page) {
            yield $page;
            $page = $this->next($newest ? 'lbefore' : 'lafter', $key, $page, $count);
        }
    }

    private function next(string $verb, string $key, array $page, int $count): array
    {
        for ($at = count($page) - 1; $at >= 0; $at--) {
            if (!$this->isWord($page[$at])) continue;
            $behind = array_slice($page, $at + 1);
            $found = $this->$verb($key, $page[$at], $count + count($behind));
            if ($found !== null) {
                $new = array_filter($found, fn($item) => !in_array($item, $behind, true));
                return array_slice(array_values($new), 0, $count);
            }
        }
        throw new Error('no item of the last page can say where the next one begins');
    }

    /* --- several lists --- */

    public function linter(string ...$keys): ?array { return $this->ask('items', 'linter', ...$this->some($keys)); }
    public function lunion(string ...$keys): ?array { return $this->ask('items', 'lunion', ...$this->some($keys)); }
    public function ldiff(string ...$keys): ?array { return $this->ask('items', 'ldiff', ...$this->some($keys)); }
    public function linterlen(string ...$keys): ?int { return $this->ask('number', 'linterlen', ...$this->some($keys)); }
    public function lunionlen(string ...$keys): ?int { return $this->ask('number', 'lunionlen', ...$this->some($keys)); }
    public function ldifflen(string ...$keys): ?int { return $this->ask('number', 'ldifflen', ...$this->some($keys)); }
    public function linterstore(string $dst, string ...$keys): ?int { return $this->ask('number', 'linterstore', $dst, ...$this->some($keys)); }
    public function lunionstore(string $dst, string ...$keys): ?int { return $this->ask('number', 'lunionstore', $dst, ...$this->some($keys)); }
    public function ldiffstore(string $dst, string ...$keys): ?int { return $this->ask('number', 'ldiffstore', $dst, ...$this->some($keys)); }
    public function lpop(string $key, int $count): ?array { return $this->ask('items', 'lpopb', $key, $count); }
    public function lpopto(string $src, string $dst, int $count): ?array { return $this->ask('items', 'lpoptob', $src, $dst, $count); }
    public function lmove(string $src, string $dst, string ...$items): ?int { return $this->ask('number', 'lmove', $src, $dst, ...$this->some($items)); }

    /** Each a line: [verb, key, item, ...], the verb ladd, ldel, lset, lrequire or lrefuse. */
    public function ltx(array ...$changes): ?bool
    {
        $block = '';
        foreach ($changes as $change) {
            [$verb, $key] = $change;
            if (!in_array($verb, self::LINES, true)) throw new \InvalidArgumentException("'$verb' is no line of a transaction");
            $items = array_slice($change, 2);
            $block .= $verb === 'lset' ? $this->line($verb, $key, ...$items) . "\r\n" : $this->change($verb, $key, $items);
        }
        return $this->do('done', 'ltx ' . strlen($block) . "\r\n$block\r\n");
    }

    /* --- requests --- */

    /** The same verbs, sent together by its run(). */
    public function pipeline(): Pipeline { return new Pipeline($this); }

    private function isWord(string $word): bool { return preg_match('/^[^\x00-\x20\x7f]+$/D', $word) === 1; }

    protected function line(string ...$words): string
    {
        foreach ($words as $word) {
            if ($this->isWord($word)) continue;
            $word = substr($word, 0, 80);
            throw new \InvalidArgumentException("no key, nor an item that can stand beside others: '$word'");
        }
        return implode(' ', $words);
    }

    protected function data(string $item): string { return strlen($item) . "\r\n$item\r\n"; }

    private function some(array $words): array
    {
        if (!$words) throw new \InvalidArgumentException('nothing is named');
        return $words;
    }

    /** One item may have any bytes. */
    private function change(string $verb, string $key, array $items, string $seconds = ''): string
    {
        if (count($this->some($items)) === 1) return $this->line("{$verb}b", $key) . "$seconds " . $this->data(...$items);
        return $this->line($verb, $key) . $seconds . ' ' . $this->line(...$items) . "\r\n";
    }

    private function options(?int $exptime, ?int $token, bool $new): string
    {
        return ($exptime === null ? '' : " $exptime") . ($token === null ? '' : " $token") . ($new ? ' new' : '');
    }

    private function ask(string $shape, string ...$words) { return $this->do($shape, $this->line(...$words) . "\r\n"); }

    /** $shape: the method that makes a value of the answer, or a function that does. */
    protected function do(string|\Closure $shape, string $request)
    {
        [$result] = $this->runAll([[$shape, $request]]);
        if ($result instanceof Error) throw $result;
        return $result;
    }

    /** The result of each call, or its error. Behind the first that is lost, all are. */
    protected function runAll(array $calls): array
    {
        $results = [];
        $known = 'nothing was sent';
        try {
            $this->connect();
            $known = 'no answer, the outcome is unknown';
            for ($sent = 0; $sent < count($calls); $sent = $end) {
                $batch = $calls[$sent][1];
                for ($end = $sent + 1; $end < count($calls) && strlen($batch) + strlen($calls[$end][1]) <= self::BATCH_BYTES; $end++) {
                    $batch .= $calls[$end][1];
                }
                $this->send($batch);
                for ($at = $sent; $at < $end; $at++) $results[] = $this->result($calls[$at][0]);
            }
        } catch (\UnexpectedValueException $error) {
            $this->close();
            $lost = new Lost("$known: " . $error->getMessage());
            while (count($results) < count($calls)) $results[] = $lost;
        } catch (\Throwable $error) {
            $this->close(); /* a late answer must not be taken for the next one */
            throw $error;
        }
        return $results;
    }

    /* --- the connection --- */

    public function close(): void
    {
        if ($this->socket) fclose($this->socket);
        $this->socket = null;
    }

    private function connect(): void
    {
        $readable = [$this->socket];
        $none = null;
        if ($this->socket && stream_select($readable, $none, $none, 0)) $this->close(); /* the proxy has closed it */
        if ($this->socket) return;
        $address = strpos($this->address, '://') ? $this->address : "tcp://$this->address";
        $context = stream_context_create($this->options + ['socket' => ['tcp_nodelay' => true]]);
        $socket = @stream_socket_client($address, $code, $text, $this->timeout, STREAM_CLIENT_CONNECT, $context);
        if (!$socket) throw new \UnexpectedValueException("$this->address: $text");
        $this->socket = $socket;
        stream_set_timeout($socket, (int) $this->timeout, (int) (fmod($this->timeout, 1) * 1e6));
        if ($this->login === null) return;
        $this->send('set login 0 0 ' . $this->data($this->login));
        if ($this->answer() !== 'STORED') throw new \UnexpectedValueException('the login was refused');
    }

    private function send(string $bytes): void
    {
        while ($bytes !== '') {
            $sent = @fwrite($this->socket, $bytes);
            if (!$sent) throw new \UnexpectedValueException('the proxy takes no request');
            $bytes = (string) substr($bytes, $sent);
        }
    }

    private function readLine(): string
    {
        $line = (string) fgets($this->socket, self::LINE_BYTES_MAX);
        if (substr($line, -2) !== "\r\n") throw new \UnexpectedValueException('no line of an answer');
        return substr($line, 0, -2);
    }

    /** So many bytes, and the line end behind them, which is not returned. */
    private function take(string $size): string
    {
        if (!preg_match('/^\d{1,10}$/D', $size)) throw new \UnexpectedValueException("'$size' is no length");
        $data = (string) stream_get_contents($this->socket, $size + 2);
        if (strlen($data) !== $size + 2 || substr($data, -2) !== "\r\n") throw new \UnexpectedValueException('the answer is out of step');
        return substr($data, 0, -2);
    }

    /** A line; or the blocks before END, each the words of its line and its data. */
    private function answer()
    {
        for ($blocks = [];;) {
            $line = $this->readLine();
            $words = explode(' ', $line);
            if (in_array($words[0], ['ERROR', 'CLIENT_ERROR', 'SERVER_ERROR'], true)) throw new Refused($line);
            if ($words[0] === 'END') return $blocks;
            if ($words[0] === 'STAT') $blocks[] = [$words, ''];
            elseif ($words[0] === 'VALUE' || $words[0] === 'ITEM') $blocks[] = [$words, $this->take($words[$words[0] === 'VALUE' ? 3 : 2] ?? '')];
            elseif (!$blocks) return $line;
            else throw new \UnexpectedValueException("'$line' is no part of this answer");
        }
    }

    private function result(string|\Closure $shape)
    {
        try {
            $answer = $this->answer();
        } catch (Refused $error) {
            return $error;
        }
        if ($shape instanceof \Closure) return $shape($answer);
        if (is_array($answer)) {
            if (in_array($shape, ['items', 'whole', 'versioned', 'each', 'stats'], true)) return $this->$shape($answer);
        } elseif ($shape === 'done') {
            if (isset(self::SAYS[$answer])) return self::SAYS[$answer];
        } elseif ($answer === 'NOT_FOUND' || $answer === 'NOT_STORED' && $shape !== 'items') {
            return $shape === 'token' ? 0 : null;
        } elseif ($shape === 'token' && $answer === 'EXISTS') {
            return null;
        } elseif (in_array($shape, ['number', 'token'], true) && preg_match('/^-?\d{1,18}$/D', $answer)) {
            return (int) $answer;
        }
        throw new \UnexpectedValueException((is_array($answer) ? 'END' : $answer) . ' is no answer to this');
    }

    /* --- shapes of answers --- */

    private function split(string $data): array { return $data === '' ? [] : explode($this->delimiter, $data); }
    private function whole(array $blocks): array { return array_column($blocks, 1); }
    private function versioned(array $blocks): ?array { return $blocks ? [$this->split($blocks[0][1]), (int) $blocks[0][0][4]] : null; }

    private function items(array $blocks): array
    {
        $found = [];
        foreach ($blocks as [$words, $data]) {
            if ($words[0] === 'ITEM') $found[] = $data;
            else array_push($found, ...$this->split($data));
        }
        return $found;
    }

    private function each(array $blocks): array
    {
        $found = [];
        foreach ($blocks as [$words, $data]) $found[$words[1]] = $this->split($data);
        return $found;
    }

    private function stats(array $blocks): array
    {
        $found = [];
        foreach ($blocks as [$words]) $found[$words[1]] = implode(' ', array_slice($words, 2));
        return $found;
    }
}

/** Its verbs answer null; run() gives the result of each, or the Error in its place. Up to 16 KB of
 *  requests are under way at a time, so that neither side waits for the other. */
class Pipeline extends Lists
{
    private array $calls = [];

    public function __construct(private Lists $lists) {}

    protected function do(string|\Closure $shape, string $request)
    {
        $this->calls[] = [$shape, $request];
        return null;
    }

    public function run(): array
    {
        [$calls, $this->calls] = [$this->calls, []];
        return $this->lists->runAll($calls);
    }
}
