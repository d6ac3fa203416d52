/**
 * The least id that an event of this moment or later can have. Ids of events are UUIDs of version
 * 7, made by the database just before the event's time is taken, so their order is the order of
 * time and the key of deliveries serves as their index by time. A second is given away for clocks
 * that were set back a little.
 */
export function firstEventIdAt(moment: Date): string {
  const milliseconds = Math.max(0, moment.getTime() - 1_000);
  const hex = milliseconds.toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-000000000000`;
}
