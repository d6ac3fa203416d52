package receiver;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.BufferedReader;
import java.io.IOException;
import java.util.Base64;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Checks captured deliveries with each library: java -jar target/receiver.jar check. The format and the exit
 * codes are in ../README.md.
 */
final class Check {
  private interface Library {
    void verify(byte[] body, Map<String, List<String>> headers, String secret) throws Exception;
  }

  private static final Map<String, Library> LIBRARIES = new LinkedHashMap<>();

  static {
    LIBRARIES.put("stripe", Verify::withStripe);
    LIBRARIES.put("standardwebhooks", Verify::withStandardWebhooks);
    LIBRARIES.put("svix", Verify::withSvix);
  }

  private Check() {}

  /** Whether every library accepts every delivery of the input, and there is one. */
  static boolean check(BufferedReader input) throws IOException {
    int number = 0;
    int rejected = 0;
    for (String line = input.readLine(); line != null; line = input.readLine()) {
      if (line.isBlank()) {
        continue;
      }
      number++;
      JsonObject captured = JsonParser.parseString(line).getAsJsonObject();
      byte[] body = Base64.getDecoder().decode(captured.get("body").getAsString());
      Map<String, List<String>> headers = new HashMap<>();
      captured.getAsJsonObject("headers").asMap()
          .forEach((name, value) -> headers.put(name.toLowerCase(), List.of(value.getAsString())));
      for (Map.Entry<String, Library> library : LIBRARIES.entrySet()) {
        try {
          library.getValue().verify(body, headers, captured.get("secret").getAsString());
          System.out.println(number + " " + library.getKey() + " accepted");
        } catch (Exception error) {
          rejected++;
          String reason = String.valueOf(error.getMessage()).split("\n")[0];
          System.out.println(number + " " + library.getKey() + " rejected: " + reason);
        }
      }
    }
    return number > 0 && rejected == 0;
  }
}
