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
import java.util.concurrent.Executors;
import java.util.stream.Collectors;

/** A webhook receiver: WEBHOOK_SECRET=whsec_… PORT=3000 java -jar target/receiver.jar serve */
final class Receiver {
  private static final int BODY_LIMIT_BYTES = 256 * 1024;

  private final Secrets secrets;
  private final Events events = new Events();

  private Receiver(Secrets secrets) {
    this.secrets = secrets;
  }

  static void serve() throws IOException {
    Secrets secrets = new Secrets(System.getenv().getOrDefault("WEBHOOK_SECRET", ""));
    int port = Integer.parseInt(System.getenv().getOrDefault("PORT", "3000"));
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
    Receiver receiver = new Receiver(secrets);
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
    Map<String, List<String>> headers = lowerCased(exchange.getRequestHeaders());
    String endpoint = first(headers, "webhook-endpoint", "");
    if (secrets.of(endpoint).stream().noneMatch(secret -> isGenuine(body, headers, secret))) {
      return 400;
    }
    JsonObject event = JsonParser.parseString(new String(body, StandardCharsets.UTF_8)).getAsJsonObject();
    if (events.isDue(event, endpoint, Long.parseLong(first(headers, "webhook-sequence", "0")))) {
      handle(event);
    }
    return 204; // what is not due is answered with success too, or it would be sent again
  }

  private static boolean isGenuine(byte[] body, Map<String, List<String>> headers, String secret) {
    try {
      Verify.withStandardWebhooks(body, headers, secret);
      return true;
    } catch (Exception rejected) {
      return false;
    }
  }

  private static String first(Map<String, List<String>> headers, String name, String otherwise) {
    return headers.getOrDefault(name, List.of(otherwise)).get(0);
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
