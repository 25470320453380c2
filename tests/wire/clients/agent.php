<?php
/* SPDX-License-Identifier: BSD-3-Clause */
/* php-memcached as an agent (README.md). "text" is the default without compression. */
$client = new Memcached();
switch ($argv[2]) {
case 'binary': $client->setOption(Memcached::OPT_BINARY_PROTOCOL, true); /* and: */
case 'text': $client->setOption(Memcached::OPT_COMPRESSION, false); break;
case 'consistent':
    $client->setOption(Memcached::OPT_DISTRIBUTION, Memcached::DISTRIBUTION_CONSISTENT); break;
case 'compatible': $client->setOption(Memcached::OPT_LIBKETAMA_COMPATIBLE, true); break;
}
foreach (array_slice($argv, 3) as $server) {
    [$host, $port] = explode(':', $server);
    $client->addServer($host, (int) $port);
}
$versions = [];

function found($client, $value)
{
    if ($client->getResultCode() === Memcached::RES_NOTFOUND) return 'miss';
    if ($client->getResultCode() !== Memcached::RES_SUCCESS) return done($client, false);
    return 'is ' . (is_string($value) ? $value : json_encode($value));
}

function done($client, $result)
{
    if ($result) return 'yes';
    $code = $client->getResultCode();
    $quiet = [Memcached::RES_NOTSTORED, Memcached::RES_NOTFOUND, Memcached::RES_DATA_EXISTS];
    return in_array($code, $quiet) ? 'no' : "error $code: " . $client->getResultMessage();
}

while (($line = fgets(STDIN)) !== false) {
    $words = explode("\t", str_replace('<CRLF>', "\r\n", rtrim($line, "\n")));
    [$verb, $key] = $words;
    $text = $words[2] ?? '';
    if ($verb === 'get') {
        $answer = found($client, $client->get($key));
    } elseif ($verb === 'gets') {
        $pair = $client->get($key, null, Memcached::GET_EXTENDED);
        $versions[$key] = $pair['cas'] ?? null;
        $answer = found($client, $pair['value'] ?? false);
    } elseif ($verb === 'cas') {
        $answer = done($client, $client->cas($versions[$key], $key, $text));
    } elseif ($verb === 'touch') {
        $answer = done($client, $client->touch($key, (int) $text));
    } elseif ($verb === 'delete') {
        $answer = done($client, $client->delete($key));
    } else {
        $result = @$client->$verb($key, $text);
        /* null: append and prepend are refused while compression is on. */
        $last = error_get_last();
        $answer = $result === null ? "error $last[message]" : done($client, $result);
    }
    echo $answer, "\n";
}
