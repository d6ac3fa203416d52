package receiver;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.stream.Collectors;

/** A webhook receiver: WEBHOOK_SECRET=whsec_… PORT=3000 java -jar target/receiver.jar serve */
final class Receiver {
  private static final int BODY_LIMIT_BYTES = 256 * 1024;

  private final String secret;

  /**
   * In memory for the example. In production, use a table with the event's id as its key, and write it in the
   * transaction that does the work.
   */
  private final Set<String> seen = ConcurrentHashMap.newKeySet();

  private Receiver(String secret) {
    this.secret = secret;
  }

  static void serve() throws IOException {
    String secret = System.getenv("WEBHOOK_SECRET");
    if (secret == null || secret.isEmpty()) {
      throw new IllegalStateException(
          "WEBHOOK_SECRET is missing: set it to the secret shown when the webhook was created");
    }
    int port = Integer.parseInt(System.getenv().getOrDefault("PORT", "3000"));
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
    Receiver receiver = new Receiver(secret);
    server.createContext("/", receiver::receive);
    server.setExecutor(Executors.newFixedThreadPool(4));
    server.start();
    System.out.println("listening on http://127.0.0.1:" + server.getAddress().getPort());
  }

  private void receive(HttpExchange exchange) throws IOException {
    try (exchange) {
      exchange.sendResponseHeaders(computeStatus(exchange), -1);
    }
  }

  private int computeStatus(HttpExchange exchange) throws IOException {
    if (!exchange.getRequestMethod().equals("POST")) {
      return 405;
    }
    // The bytes exactly as they came: the signature covers them and not the JSON.
    byte[] body = exchange.getRequestBody().readNBytes(BODY_LIMIT_BYTES + 1);
    if (body.length > BODY_LIMIT_BYTES) {
      return 413;
    }
    try {
      Verify.withStandardWebhooks(body, lowerCased(exchange.getRequestHeaders()), secret);
    } catch (Exception rejected) {
      return 400;
    }
    JsonObject event = JsonParser.parseString(new String(body, StandardCharsets.UTF_8)).getAsJsonObject();
    // A test event is accepted like any other and never acted on: the ids in its data name nothing.
    if (!isTest(event) && seen.add(event.get("id").getAsString())) {
      handle(event);
    }
    return 204; // a repeat is answered with success too, or it would be sent again
  }

  private static boolean isTest(JsonObject event) {
    return event.has("test") && event.get("test").getAsBoolean();
  }

  /**
   * Your part, which is called once for each genuine event. Put slow work into a queue: the response is due within
   * 10 seconds.
   */
  private static void handle(JsonObject event) {
    System.out.println(event.get("type").getAsString() + " " + event.get("id").getAsString());
  }

  private static Map<String, List<String>> lowerCased(Map<String, List<String>> headers) {
    return headers.entrySet().stream()
        .collect(Collectors.toMap(entry -> entry.getKey().toLowerCase(), Map.Entry::getValue));
  }
}
