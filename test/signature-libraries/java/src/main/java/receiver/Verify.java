package receiver;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;

/**
 * Three ways to verify a delivery: copy the one for your library. Each throws when the delivery is not genuine.
 *
 * <p>{@code body} is the received bytes, before any parsing. {@code headers} have lower-case names. {@code secret}
 * is the whole text, including {@code whsec_}.
 */
final class Verify {
  private Verify() {}

  static void withStandardWebhooks(byte[] body, Map<String, List<String>> headers, String secret) throws Exception {
    new com.standardwebhooks.Webhook(secret).verify(new String(body, StandardCharsets.UTF_8), headers);
  }

  static void withSvix(byte[] body, Map<String, List<String>> headers, String secret) throws Exception {
    new com.svix.Webhook(secret).verify(new String(body, StandardCharsets.UTF_8), headers);
  }

  /** Not Webhook.constructEvent: that parses the event as a Stripe object, and it is none. */
  static void withStripe(byte[] body, Map<String, List<String>> headers, String secret) throws Exception {
    String header = headers.getOrDefault("service-signature", List.of("")).get(0);
    com.stripe.net.Webhook.Signature.verifyHeader(new String(body, StandardCharsets.UTF_8), header, secret, 300);
  }
}
