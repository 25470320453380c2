<?php
/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls scripts/clients/php as the lines of its input say; README.md has their words. */
require 'mclistd.php';

function argument($word)
{
    $rest = substr($word, 1);
    switch ($word[0]) {
    case 'l': return $rest === '' ? [] : array_map('hex2bin', explode(',', $rest));
    case 's': return hex2bin($rest);
    case 'i': return (int) $rest;
    default: return $word[0] === 't' ? true : null;
    }
}

function shown($value, $name = '')
{
    if ($value === null) return 'null';
    if (is_bool($value)) return $value ? 'true' : 'false';
    if (is_int($value)) return "i$value";
    if (is_string($value)) return 's' . bin2hex($value);
    if ($value instanceof Mclistd\Refused) return 'refused:' . bin2hex($value->getMessage());
    if ($value instanceof Mclistd\Lost) return 'lost';
    if ($value instanceof Mclistd\Error) return 'moved';
    if ($value instanceof Throwable) return 'bad';
    if ($name === 'lgets') return shown($value[0]) . '@' . shown($value[1]);
    if ($name !== 'lgetx' && $name !== 'lstat') return '[' . implode(' ', array_map('shown', $value)) . ']';
    $pair = fn($key) => shown((string) $key) . '=' . shown($value[$key]);
    return '{' . implode(' ', array_map($pair, array_keys($value))) . '}';
}

while (($line = fgets(STDIN)) !== false) {
    $args = explode(' ', rtrim($line, "\n"));
    $name = array_shift($args);
    $args = array_map('argument', $args);
    try {
        $value = null;
        if ($name === 'open') [$lists, $pipe] = [new Mclistd\Lists("127.0.0.1:$args[0]", $args[1] / 1000, $args[2], $args[3] ?? null), null];
        elseif ($name === 'pipeline') $pipe = $lists->pipeline();
        elseif ($name === 'run') [$value, $pipe] = [$pipe->run(), null];
        elseif ($name === 'pages') $value = iterator_to_array($lists->pages(...$args));
        else $value = ($pipe ?? $lists)->$name(...$args);
    } catch (RuntimeException | InvalidArgumentException $error) {
        $value = $error;
    }
    echo shown($value, $name), "\n";
}
