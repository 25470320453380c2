// SPDX-License-Identifier: BSD-3-Clause
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import mclistd.Lists;

/** Calls scripts/clients/java as the lines of its input say; README.md has their words. */
class Helper {
    static String text(String hex) { return new String(HexFormat.of().parseHex(hex), StandardCharsets.ISO_8859_1); }
    static String hex(String text) { return HexFormat.of().formatHex(text.getBytes(StandardCharsets.ISO_8859_1)); }

    static Object argument(String word) {
        String rest = word.substring(1);
        switch (word.charAt(0)) {
        case 'l': return rest.isEmpty() ? List.of() : Arrays.stream(rest.split(",", -1)).map(Helper::text).toList();
        case 's': return text(rest);
        case 'i': return Long.valueOf(rest);
        default: return word.equals("t") ? true : null;
        }
    }

    static String shown(Object value) {
        if (value == null || value instanceof Boolean) return String.valueOf(value);
        if (value instanceof Long) return "i" + value;
        if (value instanceof String text) return "s" + hex(text);
        if (value instanceof Lists.Refused error) return "refused:" + hex(error.getMessage());
        if (value instanceof Lists.Lost) return "lost";
        if (value instanceof Lists.Error) return "moved";
        if (value instanceof Throwable) return "bad";
        if (value instanceof Lists.Versioned found) return shown(found.items()) + "@" + shown(found.version());
        if (value instanceof Map<?, ?> map) {
            return new TreeMap<>(map).entrySet().stream().map(one -> shown(one.getKey()) + "=" + shown(one.getValue()))
                .collect(Collectors.joining(" ", "{", "}"));
        }
        return ((List<?>) value).stream().map(Helper::shown).collect(Collectors.joining(" ", "[", "]"));
    }

    /** The arguments as the method takes them, those that are left out null or false; null: it does not. */
    static Object[] fitted(Method method, List<Object> args) {
        Class<?>[] types = method.getParameterTypes();
        List<Object> found = new ArrayList<>(args);
        if (method.isVarArgs()) {
            int from = Math.min(types.length - 1, args.size());
            List<Object> rest = args.subList(from, args.size());
            found = new ArrayList<>(args.subList(0, from));
            found.add(types[from] == String[].class ? rest.toArray(new String[0]) : rest.toArray(new List<?>[0]));
        }
        while (found.size() < types.length) found.add(types[found.size()] == boolean.class ? false : null);
        if (found.size() != types.length) return null;
        for (int i = 0; i < types.length; i++) {
            if (types[i] == boolean.class && found.get(i) == null) found.set(i, false);
        }
        return found.toArray();
    }

    static Object call(Object face, String name, List<Object> args) throws Exception {
        Method[] methods = Arrays.stream(Lists.class.getMethods()).filter(one -> one.getName().equals(name))
            .sorted((a, b) -> a.getParameterCount() - b.getParameterCount()).toArray(Method[]::new);
        for (Method method : methods) {
            Object[] fitted = fitted(method, args);
            if (fitted == null) continue;
            try {
                return method.invoke(face, fitted);
            } catch (InvocationTargetException error) {
                return error.getCause();
            }
        }
        throw new NoSuchMethodException(name);
    }

    static Object pages(Lists lists, List<Object> args) {
        List<List<String>> found = new ArrayList<>();
        try {
            for (List<String> page : lists.pages((String) args.get(0), (int) (long) args.get(1), args.size() > 2)) found.add(page);
        } catch (RuntimeException error) {
            return error;
        }
        return found;
    }

    public static void main(String[] none) throws Exception {
        Lists lists = null;
        Lists.Pipeline pipe = null;
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null;) {
            String[] words = line.split(" ");
            List<Object> args = new ArrayList<>();
            for (int i = 1; i < words.length; i++) args.add(argument(words[i]));
            Object value = null;
            switch (words[0]) {
            case "open" -> lists = new Lists("127.0.0.1", (int) (long) args.get(0)).timeout((int) (long) args.get(1))
                .delimiter((String) args.get(2)).charset(StandardCharsets.ISO_8859_1)
                .login(args.size() > 3 ? (String) args.get(3) : null);
            case "pipeline" -> pipe = lists.pipeline();
            case "run" -> {
                value = pipe.run();
                pipe = null;
            }
            case "pages" -> value = pages(lists, args);
            default -> value = call(pipe == null ? lists : pipe, words[0], args);
            }
            System.out.println(shown(value));
        }
    }
}
