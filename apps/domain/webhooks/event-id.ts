/**
 * Returns the least id of an event at or after a time. Ids of events are UUIDs of version 7,
 * created by the database just before the event's time is taken, so their order is the order of
 * time, and the key of deliveries is also their index by time. The id is a second earlier, for
 * clocks that were set back a little.
 */
export function firstEventIdAt(moment: Date): string {
  const milliseconds = Math.max(0, moment.getTime() - 1_000);
  const hex = milliseconds.toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-000000000000`;
}
