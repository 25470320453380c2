<?php
/* SPDX-License-Identifier: BSD-3-Clause */
/* The object cache of WordPress: wordpress.php ADDRESS. A tag is a group, the first that is named. */
require __DIR__ . '/wordpress_load.php';

while (($line = fgets(STDIN)) !== false) {
    $words = explode("\t", rtrim($line, "\n"));
    wp_cache_flush_runtime(); /* as another request */
    if ($words[0] === 'save') echo wp_cache_set($words[1], $words[2], $words[3], 600) ? 'yes' : 'no', "\n";
    elseif ($words[0] === 'purge') echo wp_cache_flush_group($words[1]) ? 'yes' : 'no', "\n";
    else echo ($found = wp_cache_get($words[1], 'all')) === false ? 'miss' : "is $found", "\n";
}
