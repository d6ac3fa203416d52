/** Nothing of a budget was free in time; `level` names the limit. */
export class BudgetFullError<Level extends string = string> extends Error {
  readonly level: Level;

  constructor(level: Level) {
    super(`the ${level}'s share is used up`);
    this.name = 'BudgetFullError';
    this.level = level;
  }
}

/** The client disconnected while its request waited. */
export class ClientGoneError extends Error {
  constructor() {
    super('the client went away');
    this.name = 'ClientGoneError';
  }
}

/** Who reserves a part of the budget, by level; null is not known and not counted. */
type Holders<Level extends string> = Readonly<Record<Level, string | null>>;

export interface BudgetOptions<Level extends string> {
  /** The most that one holder of each level may reserve at a time, and the whole process. */
  limits: Readonly<Record<Level | 'process', number>>;
  /** Requests that may wait, of one holder of the first level and in all. */
  maxWaiting: Readonly<{ each: number; all: number }>;
  waitMs: number;
  /** Called when a wait ends, with the level whose share was used up. */
  onWaited?: (end: 'admitted' | 'rejected' | 'gone', limit: Level | 'process') => void;
}

/** Reports that the client disconnected: one response, or several. */
export interface Ends {
  onEnd(callback: () => void): void;
}

/** What one holder has. */
interface Account<Level extends string> {
  readonly level: Level;
  readonly id: string;
  reserved: number;
  waiting: number;
  /** Number of reservations and waits that use this account. */
  users: number;
  /** Ticket of its last request that waited. */
  ticket: number;
}

/** Unused accounts of a level that are kept: creating one for each request costs processor time. */
const maxIdleAccounts = 10_000;

interface Waiter<Level extends string> {
  accounts: Account<Level>[];
  amount: number;
  /** Its rank in the order of admission. */
  ticket: number;
  admit: () => void;
}

/** A reserved part of a budget. */
export class Reservation {
  /** Changes what is reserved by an amount; closes the accounts with null. */
  readonly #charge: (change: number | null) => void;
  #amount = 0;
  #isFreed = false;

  /** Only a budget creates one. */
  constructor(charge: (change: number | null) => void) {
    this.#charge = charge;
  }

  /** Changes the amount; a larger one is reserved even when it is not free. */
  resize(amount: number): void {
    const change = amount - this.#amount;
    if (this.#isFreed || change === 0) return;
    this.#amount = amount;
    this.#charge(change);
  }

  /** Frees all of it. Can be called twice; afterwards nothing can be reserved. */
  free(): void {
    if (this.#isFreed) return;
    this.resize(0);
    this.#isFreed = true;
    this.#charge(null);
  }
}

/**
 * Divides a scarce resource of a process (memory, downloads) among requests, with a limit for each
 * holder and for the process.
 *
 * An amount fits if holder and process stay within their limits, and one larger than a limit fits
 * while nothing else is reserved. Everything else waits. Holders of the first level are admitted
 * alternately (start-time fair queueing), so that many requests of one holder delay another's by
 * one only. A holder that has used up its share delays no other.
 */
export class Budget<Level extends string> {
  readonly #options: BudgetOptions<Level>;
  readonly #accounts = new Map<Level, Map<string, Account<Level>>>();
  #waiting: Waiter<Level>[] = [];
  #reserved = 0;
  /** Ticket of the last request that was admitted after a wait. */
  #lastTicket = 0;

  constructor(options: BudgetOptions<Level>) {
    this.#options = options;
    for (const level of Object.keys(options.limits) as (Level | 'process')[])
      if (level !== 'process') this.#accounts.set(level, new Map());
  }

  /** Returns what is reserved, and how many wait. */
  get state() {
    return { reserved: this.#reserved, waiting: this.#waiting.length };
  }

  /**
   * Reserves a part of the budget, at once or after a wait.
   *
   * @param client - ends the wait when it disconnects.
   * @param waitAtMostMs - shortens the wait of a request that has waited elsewhere.
   * @returns the reservation, or a promise of it, which rejects with BudgetFullError or
   * ClientGoneError.
   * @throws BudgetFullError when too many wait.
   */
  reserve(
    holders: Holders<Level>,
    amount: number,
    client: Ends,
    waitAtMostMs = this.#options.waitMs,
  ): Reservation | Promise<Reservation> {
    const accounts = this.#open(holders);
    const obstacle = this.#findObstacle(accounts, amount) ?? (this.#isProcessAwaited() ? 'process' : null);
    if (obstacle === null) return this.#charge(accounts, amount);
    const fullQueue = this.#options.maxWaiting.all === 0 ? obstacle : this.#findFullQueue(accounts);
    if (fullQueue === null) return this.#wait(accounts, amount, obstacle, client, waitAtMostMs);
    this.#close(accounts);
    this.#options.onWaited?.('rejected', fullQueue);
    throw new BudgetFullError(fullQueue);
  }

  /** Opens the accounts of the holders, in the order of levels; each gets one more user. */
  #open(holders: Holders<Level>): Account<Level>[] {
    const opened: Account<Level>[] = [];
    for (const [level, ofLevel] of this.#accounts) {
      const id = holders[level];
      if (id === null) continue;
      let account = ofLevel.get(id);
      if (account === undefined) {
        account = { level, id, reserved: 0, waiting: 0, users: 0, ticket: 0 };
        ofLevel.set(id, account);
      }
      account.users += 1;
      opened.push(account);
    }
    return opened;
  }

  #close(accounts: Account<Level>[]): void {
    for (const account of accounts) {
      account.users -= 1;
      const ofLevel = this.#accounts.get(account.level);
      if (account.users === 0 && ofLevel !== undefined && ofLevel.size > maxIdleAccounts) ofLevel.delete(account.id);
    }
  }

  #charge(accounts: Account<Level>[], amount: number): Reservation {
    const reservation = new Reservation((change) => {
      if (change === null) return this.#close(accounts);
      this.#reserved += change;
      for (const account of accounts) account.reserved += change;
      if (change < 0 && this.#waiting.length > 0) this.#admitWaiting();
    });
    reservation.resize(amount);
    return reservation;
  }

  /** Returns the level whose limit the amount would exceed, or null when it fits. */
  #findObstacle(accounts: Account<Level>[], amount: number): Level | 'process' | null {
    const { limits } = this.#options;
    for (const { level, reserved } of accounts) if (reserved > 0 && reserved + amount > limits[level]) return level;
    return this.#reserved > 0 && this.#reserved + amount > limits.process ? 'process' : null;
  }

  /** Returns whether a request waits for the process's limit. A new one must not overtake it. */
  #isProcessAwaited(): boolean {
    return this.#waiting.some(({ accounts, amount }) => this.#findObstacle(accounts, amount) === 'process');
  }

  /** Returns the level whose queue is full, or null. */
  #findFullQueue([first]: Account<Level>[]): Level | 'process' | null {
    const { each, all } = this.#options.maxWaiting;
    if (first !== undefined && first.waiting >= each) return first.level;
    return this.#waiting.length >= all ? 'process' : null;
  }

  #wait(
    accounts: Account<Level>[],
    amount: number,
    obstacle: Level | 'process',
    client: Ends,
    atMostMs: number,
  ): Promise<Reservation> {
    const { promise, resolve, reject } = Promise.withResolvers<Reservation>();
    /** Ends the wait once. Others may fit now. */
    const end = (how: 'admitted' | 'rejected' | 'gone', limit: Level | 'process'): boolean => {
      const index = this.#waiting.indexOf(waiter);
      if (index < 0) return false;
      clearTimeout(timer);
      this.#waiting.splice(index, 1);
      for (const account of accounts) account.waiting -= 1;
      this.#options.onWaited?.(how, limit);
      if (how === 'admitted') return true;
      this.#close(accounts);
      this.#admitWaiting();
      return true;
    };
    const [first] = accounts;
    const ticket = Math.max(this.#lastTicket, first === undefined ? 0 : first.ticket + 1);
    const waiter: Waiter<Level> = {
      accounts,
      amount,
      ticket,
      admit: () => {
        this.#lastTicket = ticket;
        if (end('admitted', obstacle)) resolve(this.#charge(accounts, amount));
      },
    };
    const timer = setTimeout(() => {
      const limit = this.#findObstacle(accounts, amount) ?? obstacle;
      if (end('rejected', limit)) reject(new BudgetFullError(limit));
    }, atMostMs);
    if (first !== undefined) first.ticket = ticket;
    for (const account of accounts) account.waiting += 1;
    this.#waiting.splice(this.#waiting.findLastIndex((other) => other.ticket <= ticket) + 1, 0, waiter);
    client.onEnd(() => {
      if (end('gone', obstacle)) reject(new ClientGoneError());
    });
    return promise;
  }

  /**
   * Admits what fits, in order. Nothing passes a request that waits for the process's limit, or a
   * large amount would wait forever.
   */
  #admitWaiting(): void {
    for (const { accounts, amount, admit } of [...this.#waiting]) {
      const obstacle = this.#findObstacle(accounts, amount);
      if (obstacle === 'process') return;
      if (obstacle === null) admit();
    }
  }
}
