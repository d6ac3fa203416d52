/** The decision about a run that asks for an attempt. */
export type AdmissionRow =
  /** The run asks again: the attempt is not due, or another one of the delivery is in progress. */
  | { decision: 'wait'; waitMs: number }
  /** Another connection assigns slots of the organization or has locked the delivery: ask again in some ms. */
  | { decision: 'lock_busy' }
  /**
   * The run ends: its delivery is settled, gone or has a newer run, or is queued: the admission queues it when
   * nothing may be sent to the webhook now or no slot is free.
   */
  | { decision: 'end' }
  | AdmittedRow;

/** What an admitted attempt needs. */
export interface AdmittedRow {
  decision: 'admitted';
  /** The attempt's number in the delivery, from 1. */
  number: number;
  /** Failed and lost attempts since the event or the last redelivery: the position in the schedule. */
  failures: number;
  /** Whether its failure ends the schedule. Up to three more follow when it is lost. */
  endsSchedule: boolean;
  url: string;
  /** When what is known of the receiver was reset, by the snapshot that `url` is from. */
  resetAt: string;
  /** The stored body; null when the event's row is missing. */
  body: string | null;
  /** Its position in the webhook's sequence, digits. */
  sequence: string | null;
  /** Newest first; null when the webhook has no valid one. */
  secrets: { id: string; sealed: string }[] | null;
  /** The sealed custom headers of the webhook, base64; null for none. */
  headers: string | null;
  /** When it was admitted, by PostgreSQL's clock in microseconds. */
  startedAt: string;
  /** The same as Unix time in ms; part of signatures. */
  startedAtMs: number;
}

/** Admits an attempt of a run: one `AdmissionRow`. The function explains it and its parameters. */
export const admitAttemptSql = /* sql */ `
  select a.* from admit_attempt($1, $2, $3, $4, $5, $6, $7) a`;
