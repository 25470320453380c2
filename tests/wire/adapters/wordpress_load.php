<?php
/* SPDX-License-Identifier: BSD-3-Clause */
/* Loads WordPress as far as its object cache, without a database. WORDPRESS is the folder of
 * wp-load.php; where CORE is set there is no drop-in, and the cache is WordPress' own. */
$site = sys_get_temp_dir() . '/wordpress-' . getmypid();
$content = "$site/wp-content";
mkdir($content, 0700, true);
symlink(getenv('WORDPRESS') . '/wp-includes', "$site/wp-includes");
file_put_contents("$content/db.php", '<?php $wpdb = new class extends wpdb { public function __construct() {} };');
if (!getenv('CORE')) {
    foreach (['wordpress/object-cache.php', 'mclistd.php', 'tagged.php'] as $file) {
        copy(getenv('CLIENTS') . "/php/$file", "$content/" . basename($file));
    }
}
register_shutdown_function(function () use ($site, $content) {
    array_map('unlink', array_merge(glob("$content/*"), ["$site/wp-includes"]));
    rmdir($content);
    rmdir($site);
});

define('SHORTINIT', true);
define('ABSPATH', "$site/");
define('WP_CONTENT_DIR', $content);
define('WP_DEBUG', true);
define('MCLISTD_ADDRESS', getenv('PROXY'));
define('MCLISTD_TIMEOUT_S', 30);
$table_prefix = 'wp_';
require getenv('WORDPRESS') . '/wp-settings.php';
