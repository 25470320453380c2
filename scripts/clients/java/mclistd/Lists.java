// SPDX-License-Identifier: BSD-3-Clause
package mclistd;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import javax.net.SocketFactory;

/**
 * The list verbs of mclistd: each is a method that has its name and takes its words.
 *
 * <pre>
 * Lists lists = new Lists("127.0.0.1", 11220);
 * lists.ladd("followers:ann", "bob", "carol smith");
 * lists.lrevrange("followers:ann", 0, 9);          // [carol smith, bob]
 * </pre>
 *
 * A verb that answers with a word gives true, or false for NOT_STORED, NOT_FOUND and EXISTS; others
 * a Long or a list of items, null for NOT_FOUND or NOT_STORED in their place. One connection, which
 * the first request makes; for one thread at a time.
 */
public class Lists implements AutoCloseable {
    /** What is wrong when a request fails; one that cannot be sent is an IllegalArgumentException. */
    public static class Error extends RuntimeException {
        Error(String text) { super(text); }
    }

    /** The proxy's line of error. The connection goes on. */
    public static class Refused extends Error {
        Refused(String text) { super(text); }
    }

    /** No answer, or none that can be read: the request may have been done. The connection is
     *  closed, and the next request makes a new one. */
    public static class Lost extends Error {
        Lost(String text) { super(text); }
    }

    /** The items of a list, and its version. */
    public record Versioned(List<String> items, long version) {}

    private static final int BATCH_BYTES = 16384; // of a pipeline, sent before its answers are read
    private static final int LINE_BYTES_MAX = 65536;
    private static final Charset BYTES = StandardCharsets.ISO_8859_1; // a char for each byte
    private static final Map<String, Boolean> SAYS = Map.of("STORED", true, "DELETED", true, "OK", true,
        "TOUCHED", true, "NOT_STORED", false, "NOT_FOUND", false, "EXISTS", false);
    private static final List<String> LINES = List.of("ladd", "ldel", "lset", "lrequire", "lrefuse");

    private record Block(String[] words, String data) {}

    /** blocks: null, if it is a line. */
    private record Answer(String line, List<Block> blocks) {}

    private interface Read { Object of(Answer answer) throws IOException; }

    private record Call(Read read, String request) {}

    private final String host;
    private final int port;
    private int timeout = 3000;
    private String delimiter = ",";
    private Charset charset = StandardCharsets.UTF_8;
    private String login;
    private SocketFactory factory = SocketFactory.getDefault();
    private Socket socket;
    private InputStream in;

    public Lists(String host, int port) {
        this.host = host;
        this.port = port;
    }

    /** Milliseconds for each wait. */
    public Lists timeout(int milliseconds) { timeout = milliseconds; return this; }
    public Lists delimiter(String text) { delimiter = text; return this; }
    /** Of keys and items; ISO_8859_1 has a char for each byte. */
    public Lists charset(Charset charset) { this.charset = charset; return this; }
    /** "USER PASSWORD". */
    public Lists login(String login) { this.login = login; return this; }
    /** SSLSocketFactory.getDefault(), for instance. */
    public Lists sockets(SocketFactory factory) { this.factory = factory; return this; }

    // --- changes ---

    public Boolean ladd(String key, String... items) { return (Boolean) run(this::done, change("ladd", key, "", items)); }
    public Boolean ldel(String key, String... items) { return (Boolean) run(this::done, change("ldel", key, "", items)); }
    public Boolean laddt(String key, long seconds, String... items) { return (Boolean) run(this::done, change("laddt", key, " " + seconds, items)); }
    public Boolean lset(String key, String... items) { return done("lset " + word(key) + words(items)); }
    public Boolean lcreate(String key, String... items) { return done("lcreate " + word(key) + words(items)); }
    public Long laddx(String key, String... items) { return number("laddx " + word(key) + some(items)); }
    public Long ldelx(String key, String... items) { return number("ldelx " + word(key) + some(items)); }
    public Boolean lput(String key, List<String> items) { return lput(key, items, null, null, false); }

    /** Items of any bytes. A token goes with an exptime; both may be null. */
    public Boolean lput(String key, List<String> items, Long exptime, Long token, boolean isNew) {
        StringBuilder block = new StringBuilder();
        for (String item : items) block.append("ITEM x ").append(data(item));
        return done("lputb " + word(key) + " " + block.length() + options(exptime, token, isNew) + "\r\n" + block);
    }

    public Long lcopy(String src, String dst) { return lcopy(src, dst, null, false); }
    public Long lcopy(String src, String dst, Long exptime, boolean isNew) {
        return number("lcopy " + word(src) + " " + word(dst) + options(exptime, null, isNew));
    }

    public Boolean ltouch(String key, long exptime) { return done("ltouch " + word(key) + " " + exptime); }
    public Boolean ldrop(String key) { return done("ldrop " + word(key)); }
    public Long lpurge(String key) { return number("lpurge " + word(key)); }
    public Boolean lcompact(String key) { return done("lcompact " + word(key)); }
    public Long lconvert(String key) { return number("lconvert " + word(key)); }
    public Boolean lmigrate(String key) { return done("lmigrate " + word(key)); }

    /** The token; 0: another client has the lease; null: the list is there. */
    public Long llease(String key, long seconds) { return (Long) run(this::token, "llease " + word(key) + " " + seconds + "\r\n"); }

    // --- reads ---

    public List<String> lget(String key) { return items("lgetb " + word(key)); }

    /** null: there are none. */
    public Versioned lgets(String key) { return (Versioned) run(this::versioned, "lgets " + word(key) + "\r\n"); }

    /** Of one instant; a list that is missing is left out. */
    @SuppressWarnings("unchecked")
    public Map<String, List<String>> lgetx(String... keys) {
        return (Map<String, List<String>>) run(this::each, "lgetx" + some(keys) + "\r\n");
    }

    /** Those of the items that are in the list. */
    public List<String> lhas(String key, String... items) {
        if (items.length != 1) return items("lhas " + word(key) + some(items));
        return list(run(this::whole, "lhasb " + word(key) + " " + data(items[0])));
    }

    public Long llen(String key) { return number("llen " + word(key)); }

    /** Seconds, -1 for never. */
    public Long lttl(String key) { return number("lttl " + word(key)); }
    public Long lttl(String key, String item) { return (Long) run(this::number, "lttlb " + word(key) + " " + data(item)); }
    public List<String> lrange(String key, long from, long to) { return items("lrange " + word(key) + " " + from + " " + to); }
    public List<String> lrevrange(String key, long from, long to) { return items("lrevrange " + word(key) + " " + from + " " + to); }
    public List<String> lafter(String key, String item, long count) { return items("lafter " + word(key) + words(item) + " " + count); }
    public List<String> lbefore(String key, String item, long count) { return items("lbefore " + word(key) + words(item) + " " + count); }
    public List<String> lrandom(String key, long count) { return items("lrandomb " + word(key) + " " + count); }

    @SuppressWarnings("unchecked")
    public Map<String, String> lstat(String key) { return (Map<String, String>) run(this::stats, "lstat " + word(key) + "\r\n"); }

    /** The list in pages, from its oldest item or its newest. Each goes on behind the last item of
     *  the one before, or the one before that, if it has left the list meanwhile. */
    public Iterable<List<String>> pages(String key, int count, boolean newest) {
        return () -> new Iterator<>() {
            private List<String> page = newest ? lrevrange(key, 0, count - 1) : lrange(key, 0, count - 1);
            private boolean isGiven = false;

            @Override
            public boolean hasNext() {
                if (isGiven && !page.isEmpty()) page = following(key, page, count, newest);
                isGiven = false;
                return !page.isEmpty();
            }

            @Override
            public List<String> next() {
                if (!hasNext()) throw new NoSuchElementException();
                isGiven = true;
                return page;
            }
        };
    }

    private List<String> following(String key, List<String> page, int count, boolean newest) {
        for (int at = page.size() - 1; at >= 0; at--) {
            String item = page.get(at);
            if (!isWord(item)) continue;
            List<String> behind = page.subList(at + 1, page.size());
            int asked = count + behind.size();
            List<String> found = newest ? lbefore(key, item, asked) : lafter(key, item, asked);
            if (found == null) continue;
            found.removeAll(behind);
            return found.subList(0, Math.min(count, found.size()));
        }
        throw new Error("no item of the last page can say where the next one begins");
    }

    // --- several lists ---

    public List<String> linter(String... keys) { return items("linter" + some(keys)); }
    public List<String> lunion(String... keys) { return items("lunion" + some(keys)); }
    public List<String> ldiff(String... keys) { return items("ldiff" + some(keys)); }
    public Long linterlen(String... keys) { return number("linterlen" + some(keys)); }
    public Long lunionlen(String... keys) { return number("lunionlen" + some(keys)); }
    public Long ldifflen(String... keys) { return number("ldifflen" + some(keys)); }
    public Long linterstore(String dst, String... keys) { return number("linterstore " + word(dst) + some(keys)); }
    public Long lunionstore(String dst, String... keys) { return number("lunionstore " + word(dst) + some(keys)); }
    public Long ldiffstore(String dst, String... keys) { return number("ldiffstore " + word(dst) + some(keys)); }
    public List<String> lpop(String key, long count) { return items("lpopb " + word(key) + " " + count); }
    public List<String> lpopto(String src, String dst, long count) { return items("lpoptob " + word(src) + " " + word(dst) + " " + count); }
    public Long lmove(String src, String dst, String... items) { return number("lmove " + word(src) + " " + word(dst) + some(items)); }

    /** Each a line: verb, key, items; the verb is ladd, ldel, lset, lrequire or lrefuse. */
    @SafeVarargs
    public final Boolean ltx(List<String>... changes) {
        StringBuilder block = new StringBuilder();
        for (List<String> change : changes) {
            if (change.size() < 2 || !LINES.contains(change.get(0))) throw new IllegalArgumentException("no line of a transaction");
            String[] items = change.subList(2, change.size()).toArray(new String[0]);
            String verb = change.get(0);
            block.append(verb.equals("lset") ? "lset " + word(change.get(1)) + words(items) + "\r\n" : change(verb, change.get(1), "", items));
        }
        return done("ltx " + block.length() + "\r\n" + block);
    }

    // --- requests: a char for each byte ---

    /** The same verbs, sent together by its run(). */
    public Pipeline pipeline() { return new Pipeline(this); }

    private String bytes(String text) { return new String(text.getBytes(charset), BYTES); }
    private String data(String item) { return bytes(item).length() + "\r\n" + bytes(item) + "\r\n"; }
    private static boolean isWord(String word) { return !word.isEmpty() && word.chars().allMatch(c -> c > ' ' && c != 0x7f); }

    private String word(String word) {
        if (isWord(word)) return bytes(word);
        throw new IllegalArgumentException("no key, nor an item that can stand beside others: '" + word + "'");
    }

    private String words(String... words) {
        StringBuilder line = new StringBuilder();
        for (String word : words) line.append(' ').append(word(word));
        return line.toString();
    }

    private String some(String... words) {
        if (words.length == 0) throw new IllegalArgumentException("nothing is named");
        return words(words);
    }

    /** One item may have any bytes. */
    private String change(String verb, String key, String seconds, String... items) {
        if (items.length == 1) return verb + "b " + word(key) + seconds + " " + data(items[0]);
        return verb + " " + word(key) + seconds + some(items) + "\r\n";
    }

    private static String options(Long exptime, Long token, boolean isNew) {
        return (exptime == null ? "" : " " + exptime) + (token == null ? "" : " " + token) + (isNew ? " new" : "");
    }

    private Boolean done(String line) { return (Boolean) run(this::done, line + "\r\n"); }
    private Long number(String line) { return (Long) run(this::number, line + "\r\n"); }
    private List<String> items(String line) { return list(run(this::items, line + "\r\n")); }

    @SuppressWarnings("unchecked")
    private static List<String> list(Object found) { return (List<String>) found; }

    private Object run(Read read, String request) {
        if (this instanceof Pipeline pipe) {
            pipe.calls.add(new Call(read, request));
            return null;
        }
        Object result = runAll(List.of(new Call(read, request))).get(0);
        if (result instanceof Error error) throw error;
        return result;
    }

    /** The result of each call, or its error. Behind the first that is lost, all are. */
    private List<Object> runAll(List<Call> calls) {
        List<Object> results = new ArrayList<>();
        String known = "nothing was sent";
        try {
            connect();
            known = "no answer, the outcome is unknown";
            while (results.size() < calls.size()) {
                int end = results.size();
                StringBuilder batch = new StringBuilder();
                do {
                    batch.append(calls.get(end++).request);
                } while (end < calls.size() && batch.length() + calls.get(end).request.length() <= BATCH_BYTES);
                socket.getOutputStream().write(batch.toString().getBytes(BYTES));
                while (results.size() < end) results.add(result(calls.get(results.size()).read));
            }
        } catch (IOException error) {
            close();
            while (results.size() < calls.size()) results.add(new Lost(known + ": " + error.getMessage()));
        } catch (RuntimeException error) {
            close(); // a late answer must not be taken for the next one
            throw error;
        }
        return results;
    }

    // --- the connection ---

    @Override
    public void close() {
        try {
            if (socket != null) socket.close();
        } catch (IOException error) {
            // it is closed all the same
        }
        socket = null;
    }

    private void connect() throws IOException {
        if (socket != null) return;
        Socket made = factory.createSocket();
        socket = made;
        made.setTcpNoDelay(true);
        made.connect(new InetSocketAddress(host, port), timeout);
        made.setSoTimeout(timeout);
        in = new BufferedInputStream(made.getInputStream(), 65536);
        if (login == null) return;
        made.getOutputStream().write(("set login 0 0 " + data(login)).getBytes(BYTES));
        if (!"STORED".equals(answer().line)) throw new IOException("the login was refused");
    }

    private String line() throws IOException {
        ByteArrayOutputStream line = new ByteArrayOutputStream();
        for (int c; (c = in.read()) != '\n'; line.write(c)) {
            if (c < 0) throw new IOException("the proxy has closed the connection");
            if (line.size() > LINE_BYTES_MAX) throw new IOException("a line of the answer is too long");
        }
        String text = line.toString(BYTES);
        if (!text.endsWith("\r")) throw new IOException("the answer is out of step");
        return text.substring(0, text.length() - 1);
    }

    /** So many bytes, and the line end behind them, which is not returned. */
    private String take(String size) throws IOException {
        if (!size.matches("\\d{1,9}")) throw new IOException("no length of data");
        byte[] data = in.readNBytes(Integer.parseInt(size) + 2);
        String text = new String(data, BYTES);
        if (data.length != Integer.parseInt(size) + 2 || !text.endsWith("\r\n")) throw new IOException("the answer is out of step");
        return text.substring(0, text.length() - 2);
    }

    private Answer answer() throws IOException {
        List<Block> blocks = new ArrayList<>();
        while (true) {
            String line = line();
            String[] words = line.split(" ");
            switch (words[0]) {
            case "ERROR", "CLIENT_ERROR", "SERVER_ERROR" -> throw new Refused(text(line));
            case "END" -> { return new Answer("END", blocks); }
            case "STAT" -> blocks.add(new Block(line.split(" ", 3), ""));
            case "VALUE", "ITEM" -> {
                int at = words[0].equals("VALUE") ? 3 : 2;
                blocks.add(new Block(words, take(at < words.length ? words[at] : "")));
            }
            default -> {
                if (!blocks.isEmpty()) throw new IOException("a line that is no part of this answer");
                return new Answer(line, null);
            }
            }
        }
    }

    private Object result(Read read) throws IOException {
        try {
            return read.of(answer());
        } catch (Refused error) {
            return error;
        }
    }

    // --- shapes of answers ---

    private static IOException wrong(Answer answer) { return new IOException(answer.line + " is no answer to this"); }

    private static List<Block> blocks(Answer answer) throws IOException {
        if (answer.blocks == null) throw wrong(answer);
        return answer.blocks;
    }

    private String text(String bytes) { return new String(bytes.getBytes(BYTES), charset); }

    private Object done(Answer answer) throws IOException {
        Boolean found = SAYS.get(answer.line);
        if (found == null) throw wrong(answer);
        return found;
    }

    private Object number(Answer answer) throws IOException {
        if (answer.line.equals("NOT_FOUND") || answer.line.equals("NOT_STORED")) return null;
        if (!answer.line.matches("-?\\d{1,18}")) throw wrong(answer);
        return Long.valueOf(answer.line);
    }

    private Object token(Answer answer) throws IOException {
        if (answer.line.equals("EXISTS")) return null;
        return answer.line.equals("NOT_STORED") ? Long.valueOf(0) : number(answer);
    }

    private List<String> split(String data) {
        List<String> found = new ArrayList<>();
        for (int at = 0, end; !data.isEmpty() && at >= 0; at = end < 0 ? -1 : end + 1) {
            end = data.indexOf(bytes(delimiter), at);
            found.add(text(data.substring(at, end < 0 ? data.length() : end)));
        }
        return found;
    }

    private Object items(Answer answer) throws IOException {
        if (answer.line.equals("NOT_FOUND")) return null;
        List<String> found = new ArrayList<>();
        for (Block block : blocks(answer)) {
            found.addAll(block.words[0].equals("ITEM") ? List.of(text(block.data)) : split(block.data));
        }
        return found;
    }

    private Object whole(Answer answer) throws IOException {
        List<String> found = new ArrayList<>();
        for (Block block : blocks(answer)) found.add(text(block.data));
        return found;
    }

    private Object versioned(Answer answer) throws IOException {
        if (blocks(answer).isEmpty()) return null;
        Block block = answer.blocks.get(0);
        if (block.words.length < 5 || !block.words[4].matches("\\d{1,18}")) throw wrong(answer);
        return new Versioned(split(block.data), Long.parseLong(block.words[4]));
    }

    private Object each(Answer answer) throws IOException {
        Map<String, List<String>> found = new LinkedHashMap<>();
        for (Block block : blocks(answer)) found.put(text(block.words[1]), split(block.data));
        return found;
    }

    private Object stats(Answer answer) throws IOException {
        Map<String, String> found = new LinkedHashMap<>();
        for (Block block : blocks(answer)) found.put(text(block.words[1]), block.words.length < 3 ? "" : text(block.words[2]));
        return found;
    }

    /** Its verbs give null; run() gives the result of each, or the Error in its place. Up to 16 KB of
     *  requests are under way at a time, so that neither side waits for the other. */
    public static final class Pipeline extends Lists {
        private final Lists lists;
        private final List<Call> calls = new ArrayList<>();

        private Pipeline(Lists lists) {
            super(lists.host, lists.port);
            this.lists = lists;
            super.delimiter = lists.delimiter;
            super.charset = lists.charset;
        }

        public List<Object> run() {
            List<Call> all = new ArrayList<>(calls);
            calls.clear();
            return lists.runAll(all);
        }
    }
}
