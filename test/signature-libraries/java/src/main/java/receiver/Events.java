package receiver;

import com.google.gson.JsonObject;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/**
 * Decides which events to apply: none twice, and of one seat or grant none that is earlier than the last one.
 *
 * <p>In memory for the example. In production, use two tables, one with the event's id as its key and one with the
 * subject's, and write them in the transaction that does the work.
 */
final class Events {
  private record Position(String createdAt, String endpoint, long sequence, String id) {
    /** Each endpoint counts for itself, so sequences of two say nothing about each other: then the ids decide. */
    boolean isLater(Position last) {
      if (!createdAt.equals(last.createdAt)) {
        return createdAt.compareTo(last.createdAt) > 0;
      }
      if (endpoint.equals(last.endpoint) && sequence != last.sequence) {
        return sequence > last.sequence;
      }
      return id.compareTo(last.id) > 0;
    }
  }

  private final Set<String> seen = new HashSet<>();
  private final Map<String, Position> latest = new HashMap<>();

  /** Whether to apply an event. */
  synchronized boolean isDue(JsonObject event, String endpoint, long sequence) {
    // A test event is accepted like any other and never acted on: the ids in its data name nothing.
    if (event.has("test") && event.get("test").getAsBoolean()) {
      return false;
    }
    String id = event.get("id").getAsString();
    if (!seen.add(id)) {
      return false;
    }
    String subject = findSubject(event.getAsJsonObject("data"));
    if (subject == null) {
      return true;
    }
    Position position = new Position(event.get("createdAt").getAsString(), endpoint, sequence, id);
    Position last = latest.get(subject);
    if (last != null && !position.isLater(last)) {
      return false;
    }
    latest.put(subject, position);
    return true;
  }

  /** What an event is about: a seat, or else a grant. A grant has several seats, one after another. */
  private static String findSubject(JsonObject data) {
    for (String name : new String[] {"seatId", "grantId"}) {
      if (data.has(name)) {
        return name + " " + data.get(name).getAsString();
      }
    }
    return null;
  }
}
