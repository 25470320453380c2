/* SPDX-License-Identifier: BSD-3-Clause */
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;

/** Adds the items that it is told, as hex, with the helper of docs/clients/java.md. */
class Hostile {
    static String text(String hex) {
        return new String(HexFormat.of().parseHex(hex), StandardCharsets.UTF_8);
    }

    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        try (Lists lists = new Lists("127.0.0.1", Integer.parseInt(lines.readLine()))) {
            for (String line; (line = lines.readLine()) != null; ) {
                String[] words = line.split(" ", -1);
                try {
                    boolean stored = lists.add(text(words[0]), text(words[1]));
                    System.out.println(stored ? "stored" : "not");
                } catch (IllegalStateException | IllegalArgumentException error) {
                    System.out.println("refused");
                }
            }
            for (String item : lists.items("hostile")) {
                byte[] bytes = item.getBytes(StandardCharsets.UTF_8);
                System.out.println(HexFormat.of().formatHex(bytes));
            }
        }
    }
}
