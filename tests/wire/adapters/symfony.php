<?php
/* SPDX-License-Identifier: BSD-3-Clause */
/* The Symfony adapter as README.md says: symfony.php ADDRESS */
require 'Symfony/Component/Cache/autoload.php';
foreach (['mclistd.php', 'tagged.php', 'symfony/TagAwareAdapter.php'] as $file) require getenv('CLIENTS') . "/php/$file";

$cache = new Mclistd\Symfony\TagAwareAdapter(new Mclistd\Lists($argv[1], timeout: 30), 'test');
while (($line = fgets(STDIN)) !== false) {
    $words = explode("\t", rtrim($line, "\n"));
    if ($words[0] === 'save') {
        $item = $cache->getItem($words[1])->set($words[2])->tag(array_slice($words, 3))->expiresAfter(600);
        echo $cache->save($item) ? 'yes' : 'no', "\n";
    } elseif ($words[0] === 'get') {
        $item = $cache->getItem($words[1]);
        echo $item->isHit() ? 'is ' . $item->get() : 'miss', "\n";
    } else {
        echo $cache->invalidateTags([$words[1]]) ? 'yes' : 'no', "\n";
    }
}
