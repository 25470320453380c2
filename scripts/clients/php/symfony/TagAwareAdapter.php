<?php
/* SPDX-License-Identifier: BSD-3-Clause */
namespace Mclistd\Symfony;

use Mclistd\{Error, Lists, Tagged};
use Symfony\Component\Cache\Adapter\AbstractTagAwareAdapter;
use Symfony\Component\Cache\Marshaller\{DefaultMarshaller, MarshallerInterface};

/**
 * A cache of Symfony whose tags are lists: invalidateTags() deletes the items at once.
 *
 *     $cache = new Mclistd\Symfony\TagAwareAdapter(new Mclistd\Lists('127.0.0.1:11220', timeout: 1), 'app');
 *
 * clear() ends the namespace's version, as with Symfony's MemcachedAdapter; it flushes no server.
 */
class TagAwareAdapter extends AbstractTagAwareAdapter
{
    protected const NS_SEPARATOR = ':'; /* of what clear() stores */

    private Tagged $items;
    private MarshallerInterface $marshaller;
    private string $tagPrefix;

    public function __construct(Lists $lists, string $namespace = '', int $defaultLifetime = 0, ?MarshallerInterface $marshaller = null)
    {
        parent::__construct($namespace, $defaultLifetime);
        $this->enableVersioning();
        $this->items = new Tagged($lists);
        $this->marshaller = $marshaller ?? new DefaultMarshaller();
        /* It is not the same in all versions of Symfony. */
        $this->tagPrefix = (new \ReflectionClassConstant(AbstractTagAwareAdapter::class, 'TAGS_PREFIX'))->getValue();
    }

    protected function doFetch(array $ids): iterable
    {
        $keys = $this->keys($ids);
        $found = [];
        foreach ($this->items->get(array_keys($keys)) as $key => $value) {
            try {
                $found[$keys[$key]] = $this->marshaller->unmarshall($value);
            } catch (\Exception) {
                /* Of a class that is gone, say: it is made anew. */
            }
        }
        return $found;
    }

    protected function doHave(string $id): bool { return (bool) $this->items->get(array_keys($this->keys([$id]))); }

    /** $addTagData leaves out the tags that the item had when it was fetched: a purge may have taken
     *  it off them since. So all are added. */
    protected function doSave(array $values, int $lifetime, array $addTagData = [], array $removeTagData = []): array
    {
        $keys = $this->keys(array_keys($values));
        $failed = $tags = $stored = [];
        $marshalled = $this->marshaller->marshall($values, $failed);
        foreach ($keys as $key => $id) {
            if (!isset($marshalled[$id])) continue;
            $stored[$key] = $marshalled[$id];
            $names = is_array($values[$id]) ? $values[$id]['tags'] ?? [] : [];
            $tags[$key] = array_map(fn($tag) => Tagged::key($this->getId($this->tagPrefix . $tag)), array_values($names));
        }
        foreach ($this->items->set($stored, $tags, $lifetime) as $key) $failed[] = $keys[$key];
        $this->doDeleteTagRelations($removeTagData);
        return $failed;
    }

    /** The base class looks at an exception, and not at an answer of false. */
    protected function doDelete(array $ids): bool
    {
        foreach ($this->items->delete(array_keys($this->keys($ids))) as $end) {
            if ($end instanceof Error) throw $end;
        }
        return true;
    }

    protected function doDeleteTagRelations(array $tagData): bool
    {
        $keys = array_map(fn($ids) => array_keys($this->keys($ids)), $tagData);
        return !$keys || $this->items->untag(array_combine(array_map([Tagged::class, 'key'], array_keys($keys)), $keys));
    }

    protected function doInvalidate(array $tagIds): bool { return $this->items->purge(array_map([Tagged::class, 'key'], $tagIds)); }

    protected function doClear(string $namespace): bool { return false; /* the new version has done it */ }

    /** key => id */
    private function keys(array $ids): array
    {
        $keys = [];
        foreach ($ids as $id) $keys[Tagged::key((string) $id)] = (string) $id;
        return $keys;
    }
}
