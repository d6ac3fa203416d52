package receiver;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * WEBHOOK_SECRET: the secret of the only webhook, or {@code <webhook-endpoint>=whsec_…} for each of several, with
 * spaces between. An endpoint may have two, while one is being rotated.
 */
final class Secrets {
  private static final Pattern INVISIBLE = Pattern.compile("[^\\t\\n\\r -~]");
  private static final Pattern QUOTE = Pattern.compile("[\"'`]");
  private static final Pattern ENTRY = Pattern.compile("(?:([^=]+)=)?(whsec_[A-Za-z0-9+/]{32})");

  private final Map<String, List<String>> byEndpoint = new HashMap<>();

  /** Throws IllegalArgumentException with a sentence that contains no secret. */
  Secrets(String text) {
    if (INVISIBLE.matcher(text).find()) {
      throw new IllegalArgumentException(
          "WEBHOOK_SECRET has a byte order mark or another invisible character: save it without one");
    }
    if (QUOTE.matcher(text).find()) {
      throw new IllegalArgumentException("WEBHOOK_SECRET has quotes: remove them");
    }
    for (String entry : text.split("\\s+")) {
      Matcher match = ENTRY.matcher(entry);
      if (match.matches()) {
        String endpoint = match.group(1) == null ? "" : match.group(1);
        byEndpoint.computeIfAbsent(endpoint, none -> new ArrayList<>()).add(match.group(2));
      } else if (!entry.isEmpty()) {
        throw new IllegalArgumentException(
            "WEBHOOK_SECRET contains what is not a secret: copy all of it, from whsec_ to its end");
      }
    }
    if (byEndpoint.isEmpty()) {
      throw new IllegalArgumentException(
          "WEBHOOK_SECRET is missing: set it to the secret shown when the webhook was created");
    }
  }

  List<String> of(String endpoint) {
    return byEndpoint.getOrDefault(endpoint, byEndpoint.getOrDefault("", List.of()));
  }
}
