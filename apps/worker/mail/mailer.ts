import { setTimeout as wait } from 'node:timers/promises';
import type pg from 'pg';
import type { SealingKeys } from '#domain/encryption/envelope.ts';
import { IntervalLoop } from '#runtime/flow/interval-loop.ts';
import type { MailSender } from '#runtime/settings/mail.ts';
import { type AdmittedMail, composeMessage } from './compose.ts';
import { type MailServer, type TryOutcome, type TryResult, trySend } from './smtp.ts';
import { admitMailSql, dropMailsSql, settleMailSql } from './sql.ts';

export interface MailSettings extends MailServer {
  sender: MailSender;
  /** The console's origin, for links. */
  origin: string;
}

interface MailerOptions {
  pool: pg.Pool;
  /** Null: no mail is sent, and none waits. */
  settings: MailSettings | null;
  /** The sealing keys; each call returns the newest. */
  keys: () => SealingKeys;
  onTried: (outcome: TryOutcome) => void;
  onDropped: (mails: number) => void;
  onError: (cause: unknown) => void;
  /** How often the loop looks for due mails. */
  everyMs?: number;
}

const minuteSeconds = 60;
/** Waits after a try that the server put off or blocked; the last one repeats, until 72 hours have passed. */
const waitsSeconds = [1, 5, 15, 30, 60, 120, 240, 480, 720].map((minutes) => minutes * minuteSeconds);
/** A fault of the server or the settings is of no mail: each is tried again soon after its repair. */
const serverWaitSeconds = 5 * minuteSeconds;
/** Meanwhile one mail tries the server, not all of them: it may lock an account that fails often. */
const serverPauseMs = 60_000;
/** So many addresses in a row that a policy of the server blocks: then it is about the sender. */
const blockedAddresses = 3;
/** At most five mails a second. */
const pauseMs = 200;
const dropEveryMs = 60_000;
/** How long a try may continue after `stop`. */
const stopMs = 20_000;

/**
 * Sends mails: a loop that admits one mail that is due after another, and tries to send it. The
 * table has the waits, so nothing else keeps a mail. A mail server that hangs delays mails only.
 */
export class Mailer {
  readonly #options: MailerOptions;
  readonly #loop: IntervalLoop;
  readonly #ending = new AbortController();
  #pausedUntilMs = 0;
  /** The addresses that the server has blocked since it took a mail. */
  readonly #blocked = new Set<string>();

  constructor(options: MailerOptions) {
    const { settings, onError, everyMs = 1_000 } = options;
    this.#options = options;
    this.#loop = new IntervalLoop(
      settings === null
        ? { run: () => this.#drop(), everyMs: dropEveryMs, onError }
        : { run: (signal) => this.#sendDue(settings, signal), everyMs, onError },
    );
  }

  start(): void {
    void this.#loop.start();
  }

  /** Waits for a try in progress, and ends it after 20 s. */
  async stop(): Promise<void> {
    const timer = setTimeout(() => this.#ending.abort(), stopMs);
    await this.#loop.stop();
    clearTimeout(timer);
  }

  async #drop(): Promise<void> {
    const { rows } = await this.#options.pool.query<{ mails: number }>(dropMailsSql);
    this.#options.onDropped(rows[0]?.mails ?? 0);
  }

  async #sendDue(settings: MailSettings, signal: AbortSignal): Promise<void> {
    while (!signal.aborted && performance.now() >= this.#pausedUntilMs) {
      const { rows } = await this.#options.pool.query<AdmittedMail>(admitMailSql);
      const [mail] = rows;
      if (mail === undefined) return;
      const result = await this.#try(mail, settings);
      this.#options.onTried(result.outcome);
      await this.#settle(mail, result);
      if (result.outcome === 'unavailable' || result.outcome === 'misconfigured')
        this.#pausedUntilMs = performance.now() + serverPauseMs;
      await wait(pauseMs, undefined, { signal }).catch(() => {});
    }
  }

  async #try(mail: AdmittedMail, settings: MailSettings): Promise<TryResult> {
    try {
      const message = composeMessage(mail, { ...settings, keys: this.#options.keys() });
      return this.#judge(mail, await trySend(settings, message, this.#ending.signal));
    } catch (cause) {
      this.#options.onError(cause);
      return { outcome: 'later', reply: 'INTERNAL' };
    }
  }

  /** One address that is blocked delays its mail. Several, and none that is not, are of the settings. */
  #judge({ address }: AdmittedMail, result: TryResult): TryResult {
    if (result.outcome === 'sent') this.#blocked.clear();
    if (result.outcome !== 'blocked') return result;
    if (this.#blocked.size < blockedAddresses) this.#blocked.add(address);
    return this.#blocked.size < blockedAddresses ? result : { ...result, outcome: 'misconfigured' };
  }

  async #settle({ id, attempts }: AdmittedMail, { outcome, reply }: TryResult): Promise<void> {
    const isOver = outcome === 'sent' || outcome === 'rejected';
    const isOfServer = outcome === 'unavailable' || outcome === 'misconfigured';
    const waitSeconds = isOfServer ? serverWaitSeconds : (waitsSeconds[attempts - 1] ?? waitsSeconds.at(-1));
    await this.#options.pool.query(settleMailSql, [
      id,
      attempts,
      isOver ? outcome : null,
      reply,
      isOver ? null : waitSeconds,
    ]);
  }
}
