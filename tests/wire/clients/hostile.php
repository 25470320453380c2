<?php
/* SPDX-License-Identifier: BSD-3-Clause */
/* Adds the items that it is told, as hex, with the helper of docs/clients/php.md. */
require 'lists.php';

$lists = new Lists('tcp://127.0.0.1:' . trim(fgets(STDIN)));
while (($line = fgets(STDIN)) !== false) {
    [$key, $item] = array_map('hex2bin', explode(' ', rtrim($line, "\n")));
    try {
        echo $lists->add($key, $item) ? "stored\n" : "not\n";
    } catch (RuntimeException | InvalidArgumentException $error) {
        echo "refused\n";
    }
}
foreach ($lists->items('hostile') as $item) echo bin2hex($item), "\n";
