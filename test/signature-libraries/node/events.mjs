/**
 * Decides which events to apply: none twice, and of one seat or grant none that is earlier than the last one.
 *
 * In memory for the example. In production, use two tables, one with the event's id as its key and one with the
 * subject's, and write them in the transaction that does the work.
 */
export class Events {
  #seen = new Set();
  #latest = new Map();

  /** Whether to apply an event. `sequence` is undefined when the header is missing. */
  isDue(event, { endpoint, sequence = 0 }) {
    // A test event is accepted like any other and never acted on: the ids in its data name nothing.
    if (event.test === true || this.#seen.has(event.id)) return false;
    this.#seen.add(event.id);
    const subject = findSubject(event.data);
    if (subject === null) return true;
    const position = { createdAt: event.createdAt, endpoint, sequence: Number(sequence), id: event.id };
    const last = this.#latest.get(subject);
    if (last !== undefined && !isLater(position, last)) return false;
    this.#latest.set(subject, position);
    return true;
  }
}

/** What an event is about: a seat, or else a grant. A grant has several seats, one after another. */
function findSubject({ seatId, grantId } = {}) {
  if (seatId) return `seat ${seatId}`;
  return grantId ? `grant ${grantId}` : null;
}

/** Each endpoint counts for itself, so sequences of two say nothing about each other: then the ids decide. */
function isLater(position, last) {
  if (position.createdAt !== last.createdAt) return position.createdAt > last.createdAt;
  if (position.endpoint === last.endpoint && position.sequence !== last.sequence)
    return position.sequence > last.sequence;
  return position.id > last.id;
}
