/* SPDX-License-Identifier: BSD-3-Clause */
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import net.spy.memcached.AddrUtil;
import net.spy.memcached.CASResponse;
import net.spy.memcached.CASValue;
import net.spy.memcached.ConnectionFactory;
import net.spy.memcached.ConnectionFactoryBuilder;
import net.spy.memcached.DefaultConnectionFactory;
import net.spy.memcached.DefaultHashAlgorithm;
import net.spy.memcached.KetamaConnectionFactory;
import net.spy.memcached.KetamaNodeKeyFormatter;
import net.spy.memcached.MemcachedClient;
import net.spy.memcached.internal.OperationFuture;

/** Java's spymemcached as an agent (README.md). */
class Agent {
    static MemcachedClient client;
    static final Map<String, Long> versions = new HashMap<>();

    static String shown(Object value) {
        return value == null ? "miss" : "is " + value;
    }

    static String done(OperationFuture<Boolean> future) throws Exception {
        return future.get() ? "yes" : "no";
    }

    static String run(String verb, String key, String text) throws Exception {
        switch (verb) {
            case "get": return shown(client.get(key));
            case "gets":
                CASValue<Object> found = client.gets(key);
                if (found == null) return "miss";
                versions.put(key, found.getCas());
                return shown(found.getValue());
            case "cas":
                return client.cas(key, versions.get(key), text) == CASResponse.OK ? "yes" : "no";
            case "set": return done(client.set(key, 0, text));
            case "add": return done(client.add(key, 0, text));
            case "replace": return done(client.replace(key, 0, text));
            case "append": return done(client.append(key, text));
            case "prepend": return done(client.prepend(key, text));
            case "delete": return done(client.delete(key));
            case "touch": return done(client.touch(key, Integer.parseInt(text)));
            default: return "no such call";
        }
    }

    public static void main(String[] args) throws Exception {
        System.setProperty("net.spy.log.LoggerImpl", "net.spy.memcached.compat.log.SunLogger");
        java.util.logging.Logger.getLogger("net.spy").setLevel(java.util.logging.Level.OFF);
        ConnectionFactory factory;
        if (args[1].equals("ketama")) {
            factory = new KetamaConnectionFactory(
                DefaultConnectionFactory.DEFAULT_OP_QUEUE_LEN,
                DefaultConnectionFactory.DEFAULT_READ_BUFFER_SIZE,
                DefaultConnectionFactory.DEFAULT_OP_QUEUE_MAX_BLOCK_TIME,
                DefaultHashAlgorithm.KETAMA_HASH,
                KetamaNodeKeyFormatter.Format.LIBMEMCACHED, new HashMap<>());
        } else {
            ConnectionFactoryBuilder builder = new ConnectionFactoryBuilder().setOpTimeout(20000);
            if (!args[1].equals("default")) {
                builder.setHashAlg(DefaultHashAlgorithm.valueOf(args[1]));
            }
            factory = builder.build();
        }
        client = new MemcachedClient(
            factory, AddrUtil.getAddresses(Arrays.asList(args).subList(2, args.length)));
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = lines.readLine()) != null; ) {
            String[] words = line.replace("<CRLF>", "\r\n").split("\t", -1);
            try {
                System.out.println(run(words[0], words[1], words.length > 2 ? words[2] : ""));
            } catch (Exception error) {
                System.out.println("error " + String.valueOf(error).replace('\n', ' '));
            }
        }
        client.shutdown();
    }
}
