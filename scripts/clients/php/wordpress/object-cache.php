<?php
/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * Plugin Name: mclistd object cache
 * Description: Keeps WordPress' object cache in memcached, and can flush a group of it.
 * Version: 0.2.0
 * License: BSD-3-Clause
 *
 * Lies in wp-content, beside mclistd.php and tagged.php. A group is a list of the keys of its items.
 * In wp-config.php, if wanted: MCLISTD_ADDRESS, MCLISTD_TIMEOUT_S, MCLISTD_LOGIN, WP_CACHE_KEY_SALT.
 */
if (!class_exists('Mclistd\Tagged')) {
    $mclistd_folder = is_file(__DIR__ . '/tagged.php') ? __DIR__ : dirname(__DIR__);
    require_once "$mclistd_folder/mclistd.php";
    require_once "$mclistd_folder/tagged.php";
}

class WP_Object_Cache
{
    private const REMEMBER_S = 10; /* generations of groups, in requests and workers that last */

    public $cache_hits = 0;
    public $cache_misses = 0;
    public $global_groups = [];

    private $cache = []; /* group => key => value, of this request */
    private $local = []; /* groups that no other request sees */
    private $blog;
    private $multisite;
    private $salt;
    private $store;

    public function __construct()
    {
        $this->multisite = function_exists('is_multisite') && is_multisite();
        $this->blog = $this->multisite ? get_current_blog_id() : 1;
        $this->salt = defined('WP_CACHE_KEY_SALT') ? WP_CACHE_KEY_SALT : 'wp:' . (defined('DB_NAME') ? DB_NAME : '') . ':' . ($GLOBALS['table_prefix'] ?? '');
        $lists = new Mclistd\Lists(
            defined('MCLISTD_ADDRESS') ? MCLISTD_ADDRESS : '127.0.0.1:11220',
            timeout: defined('MCLISTD_TIMEOUT_S') ? MCLISTD_TIMEOUT_S : 1,
            login: defined('MCLISTD_LOGIN') ? MCLISTD_LOGIN : null,
        );
        $this->store = new Mclistd\Tagged($lists, remember: self::REMEMBER_S);
    }

    /* --- changes --- */

    public function add($key, $data, $group = 'default', $expire = 0)
    {
        if (!$this->is_valid($key) || function_exists('wp_suspend_cache_addition') && wp_suspend_cache_addition()) return false;
        if ($this->has($key, $group)) return false;
        $seconds = max(0, (int) $expire);
        $added = true;
        if ($this->shared($group)) {
            $add = fn() => $this->store->add($this->key($key, $group), serialize($data), $seconds, $this->tags($group), $this->all());
            $added = $this->try($add, null);
        }
        if ($added !== false) $this->keep($key, $group, $data);
        return $added === true;
    }

    public function replace($key, $data, $group = 'default', $expire = 0)
    {
        if (!$this->is_valid($key)) return false;
        $new = fn($old) => $old === null ? null : [$data, max(0, (int) $expire)];
        return $this->change($key, $group, $new) !== null;
    }

    public function set($key, $data, $group = 'default', $expire = 0)
    {
        return $this->is_valid($key) && $this->set_multiple([$key => $data], $group, $expire)[$key];
    }

    public function set_multiple(array $data, $group = '', $expire = 0)
    {
        $values = $done = [];
        foreach ($data as $key => $value) {
            $done[$key] = $this->is_valid($key);
            if (!$done[$key]) continue;
            $this->keep($key, $group, $value);
            $values[$this->key($key, $group)] = serialize($value);
        }
        if (!$this->shared($group) || !$values) return $done;
        $tags = array_fill_keys(array_keys($values), $this->tags($group));
        $failed = $this->try(fn() => $this->store->set($values, $tags, max(0, (int) $expire), $this->all()), array_keys($values));
        foreach ($done as $key => $valid) $done[$key] = $valid && !in_array($this->key($key, $group), $failed, true);
        return $done;
    }

    public function add_multiple(array $data, $group = '', $expire = 0)
    {
        $done = [];
        foreach ($data as $key => $value) $done[$key] = $this->add($key, $value, $group, $expire);
        return $done;
    }

    public function delete($key, $group = 'default', $deprecated = false)
    {
        return $this->is_valid($key) && $this->delete_multiple([$key], $group)[$key];
    }

    public function delete_multiple(array $keys, $group = '')
    {
        $ends = [];
        if ($this->shared($group) && $keys) {
            $ids = array_map(fn($key) => $this->key($key, $group), $keys);
            $ends = $this->try(fn() => $this->store->delete($ids), []);
        }
        $done = [];
        foreach ($keys as $key) {
            $there = $this->has($key, $group);
            unset($this->cache[$this->group($group)][$key]);
            $done[$key] = $this->shared($group) ? ($ends[$this->key($key, $group)] ?? false) === true : $there;
        }
        return $done;
    }

    public function incr($key, $offset = 1, $group = 'default')
    {
        if (!$this->is_valid($key)) return false;
        $new = fn($old) => $old === null ? null : [max(0, (is_numeric($old) ? $old : 0) + (int) $offset), null];
        return $this->change($key, $group, $new)[0] ?? false;
    }

    public function decr($key, $offset = 1, $group = 'default') { return $this->incr($key, -(int) $offset, $group); }

    /** All groups of all sites. Their memory is free when they expire, or memcached needs it. */
    public function flush()
    {
        $this->flush_runtime();
        return $this->try(fn() => $this->store->drop($this->all()), false);
    }

    /** Of the current site, or of all if it is a global group. */
    public function flush_group($group)
    {
        unset($this->cache[$this->group($group)]);
        return !$this->shared($group) || $this->try(fn() => $this->store->purge($this->tags($group)), false);
    }

    public function flush_runtime()
    {
        $this->cache = [];
        $this->store->forget();
        return true;
    }

    /* --- reads --- */

    public function get($key, $group = 'default', $force = false, &$found = null)
    {
        $found = false;
        if (!$this->is_valid($key)) return false;
        if (!$this->has($key, $group) || $force && $this->shared($group)) $this->fetch([$key], $group);
        $found = $this->has($key, $group);
        $found ? $this->cache_hits++ : $this->cache_misses++;
        return $found ? $this->copy($this->cache[$this->group($group)][$key]) : false;
    }

    public function get_multiple($keys, $group = 'default', $force = false)
    {
        $wanted = array_filter($keys, fn($key) => $this->is_valid($key) && ($force || !$this->has($key, $group)));
        if ($wanted && $this->shared($group)) $this->fetch(array_values($wanted), $group);
        $values = [];
        foreach ($keys as $key) $values[$key] = $this->has($key, $group) ? $this->copy($this->cache[$this->group($group)][$key]) : false;
        $hits = count(array_filter($keys, fn($key) => $this->has($key, $group)));
        $this->cache_hits += $hits;
        $this->cache_misses += count($keys) - $hits;
        return $values;
    }

    public function stats()
    {
        echo "<p><strong>Cache Hits:</strong> {$this->cache_hits}<br /><strong>Cache Misses:</strong> {$this->cache_misses}<br /></p>";
    }

    /* --- groups and sites --- */

    public function add_global_groups($groups)
    {
        $this->global_groups = array_fill_keys((array) $groups, true) + $this->global_groups;
    }

    public function add_non_persistent_groups($groups)
    {
        $this->local = array_fill_keys((array) $groups, true) + $this->local;
    }

    public function switch_to_blog($blog_id) { $this->blog = $this->multisite ? (int) $blog_id : 1; }

    private function named($group): string { return (string) ($group === '' || $group === null ? 'default' : $group); }
    private function shared($group): bool { return !isset($this->local[$this->named($group)]); }
    private function group($group): string
    {
        $group = $this->named($group);
        return (isset($this->global_groups[$group]) ? 0 : $this->blog) . ':' . rawurlencode($group);
    }
    private function key($key, $group): string { return Mclistd\Tagged::key("{$this->salt}:{$this->group($group)}:$key"); }
    private function tags($group): array { return [Mclistd\Tagged::key("{$this->salt}:group:{$this->group($group)}")]; }
    private function all(): array { return [Mclistd\Tagged::key("{$this->salt}:all")]; }

    /* --- values --- */

    private function has($key, $group): bool { return array_key_exists($key, $this->cache[$this->group($group)] ?? []); }
    private function copy($value) { return is_object($value) ? clone $value : $value; }
    private function keep($key, $group, $value): void { $this->cache[$this->group($group)][$key] = $this->copy($value); }

    private function fetch(array $keys, $group): void
    {
        if (!$this->shared($group)) return;
        $ids = array_combine(array_map(fn($key) => $this->key($key, $group), $keys), $keys);
        foreach ($keys as $key) unset($this->cache[$this->group($group)][$key]);
        $values = $this->try(fn() => $this->store->get(array_keys($ids), array_merge($this->tags($group), $this->all())), []);
        foreach ($values as $id => $text) {
            $value = @unserialize($text);
            if ($value !== false || $text === 'b:0;') $this->cache[$this->group($group)][$ids[$id]] = $value;
        }
    }

    /** $new gets the value or null, and gives [value, seconds] or null. What is stored then, or null. */
    private function change($key, $group, callable $new): ?array
    {
        $stored = null;
        if (!$this->shared($group)) {
            $stored = $new($this->cache[$this->group($group)][$key] ?? null);
        } else {
            $text = function ($old) use ($new, &$stored) {
                $stored = $new($old === null ? null : @unserialize($old));
                return $stored ? [serialize($stored[0]), $stored[1]] : null;
            };
            $change = fn() => $this->store->change($this->key($key, $group), $text, $this->tags($group), $this->all());
            if (!$this->try($change, false)) return null;
        }
        if ($stored) $this->keep($key, $group, $stored[0]);
        return $stored;
    }

    /** While the proxy does not answer this is a cache of the request. */
    private function try(callable $do, $failed)
    {
        try {
            return $do();
        } catch (Mclistd\Error $error) {
            return $failed;
        }
    }

    private function is_valid($key): bool
    {
        if (is_int($key) || is_string($key) && trim($key) !== '') return true;
        if (function_exists('_doing_it_wrong')) _doing_it_wrong('wp_cache', 'A cache key is an integer or a string that is not empty.', '6.1.0');
        return false;
    }
}

function wp_cache_init() { $GLOBALS['wp_object_cache'] = new WP_Object_Cache(); }
function wp_cache_add($key, $data, $group = '', $expire = 0) { return $GLOBALS['wp_object_cache']->add($key, $data, $group, (int) $expire); }
function wp_cache_add_multiple(array $data, $group = '', $expire = 0) { return $GLOBALS['wp_object_cache']->add_multiple($data, $group, $expire); }
function wp_cache_replace($key, $data, $group = '', $expire = 0) { return $GLOBALS['wp_object_cache']->replace($key, $data, $group, (int) $expire); }
function wp_cache_set($key, $data, $group = '', $expire = 0) { return $GLOBALS['wp_object_cache']->set($key, $data, $group, (int) $expire); }
function wp_cache_set_multiple(array $data, $group = '', $expire = 0) { return $GLOBALS['wp_object_cache']->set_multiple($data, $group, $expire); }
function wp_cache_get($key, $group = '', $force = false, &$found = null) { return $GLOBALS['wp_object_cache']->get($key, $group, $force, $found); }
function wp_cache_get_multiple($keys, $group = '', $force = false) { return $GLOBALS['wp_object_cache']->get_multiple($keys, $group, $force); }
function wp_cache_delete($key, $group = '') { return $GLOBALS['wp_object_cache']->delete($key, $group); }
function wp_cache_delete_multiple(array $keys, $group = '') { return $GLOBALS['wp_object_cache']->delete_multiple($keys, $group); }
function wp_cache_incr($key, $offset = 1, $group = '') { return $GLOBALS['wp_object_cache']->incr($key, $offset, $group); }
function wp_cache_decr($key, $offset = 1, $group = '') { return $GLOBALS['wp_object_cache']->decr($key, $offset, $group); }
function wp_cache_flush() { return $GLOBALS['wp_object_cache']->flush(); }
function wp_cache_flush_runtime() { return $GLOBALS['wp_object_cache']->flush_runtime(); }
function wp_cache_flush_group($group) { return $GLOBALS['wp_object_cache']->flush_group($group); }
function wp_cache_close() { return true; }
function wp_cache_add_global_groups($groups) { $GLOBALS['wp_object_cache']->add_global_groups($groups); }
function wp_cache_add_non_persistent_groups($groups) { $GLOBALS['wp_object_cache']->add_non_persistent_groups($groups); }
function wp_cache_switch_to_blog($blog_id) { $GLOBALS['wp_object_cache']->switch_to_blog($blog_id); }

function wp_cache_supports($feature)
{
    return in_array($feature, ['add_multiple', 'set_multiple', 'get_multiple', 'delete_multiple', 'flush_runtime', 'flush_group'], true);
}
