package receiver;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;

/** Shows how to receive webhooks: {@code serve} listens, {@code check} verifies captured deliveries. */
public final class Main {
  private Main() {}

  public static void main(String[] arguments) {
    try {
      String command = arguments.length == 1 ? arguments[0] : "";
      switch (command) {
        case "serve" -> Receiver.serve();
        case "check" -> {
          BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
          System.exit(Check.check(input) ? 0 : 1);
        }
        default -> throw new IllegalArgumentException("usage: receiver serve, or receiver check < captured.jsonl");
      }
    } catch (Exception error) {
      System.err.println(error.getMessage());
      System.exit(2);
    }
  }
}
