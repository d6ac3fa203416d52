/** Nothing was free in time; `level` says whose limit it was. */
export class BudgetExhausted<Level extends string = string> extends Error {
  readonly level: Level;

  constructor(level: Level) {
    super(`the ${level}'s share is used up`);
    this.name = 'BudgetExhausted';
    this.level = level;
  }
}

/** The client went away while its request waited. */
export class ClientGone extends Error {
  constructor() {
    super('the client went away');
    this.name = 'ClientGone';
  }
}

/**
 * What holds a part of the budget beside the process, by level: `{key: '…', organization: '…'}`.
 * Null: not known, so not counted.
 */
export type Holders<Level extends string> = Readonly<Record<Level, string | null>>;

export interface BudgetOptions<Level extends string> {
  /** The most that one holder of each level has at a time, and all of this process. */
  limits: Readonly<Record<Level | 'pod', number>>;
  /** How many requests may wait: of one holder of the first level, and all. */
  maxWaiting: Readonly<{ each: number; all: number }>;
  waitMs: number;
  /** Called for each wait that ended; `limit` is whose share was used up. */
  onWaited?: (end: 'admitted' | 'refused' | 'gone', limit: Level | 'pod') => void;
}

/** A part of the budget that is held. */
export interface Hold {
  /**
   * Changes what is held; a smaller amount lets others in, a larger one is taken whether it is free
   * or not.
   */
  resize(amount: number): void;
  /** Returns all of it. Safe to call twice; nothing can be taken afterwards. */
  release(): void;
}

/** Reports that the client disconnected: an answer, or several. */
export interface Ends {
  onEnd(callback: () => void): void;
}

interface Account {
  held: number;
  waiting: number;
  /** Holds and waits that have it open. */
  users: number;
  /** Of the last one that waited. */
  turn: number;
  forget: () => void;
}

/**
 * Unused accounts of a level stay until there are so many: making one for each request
 * shows in the processor time of a read.
 */
const maxIdleAccounts = 10_000;

interface Waiter<Level extends string> {
  holders: Holders<Level>;
  amount: number;
  /** Its place among all that wait. */
  turn: number;
  admit: () => void;
}

/**
 * Divides something that a process has little of (memory, downloads) among those who ask, with a
 * limit for each holder and for all.
 *
 * An amount fits where holder and process stay within their limits. One that is larger than a limit
 * fits where nothing else is held, so that nothing is impossible. Those that do not fit wait.
 * Holders of the first level take turns (start-time fair queueing), so that many requests of one
 * delay one of another by a single turn; a holder that has used up its share delays no other.
 */
export function createBudget<Level extends string>(options: BudgetOptions<Level>) {
  const { limits, maxWaiting, waitMs, onWaited = () => {} } = options;
  const levels = Object.keys(limits).filter((level) => level !== 'pod') as Level[];
  const accounts = new Map<Level, Map<string, Account>>(levels.map((level) => [level, new Map()]));
  let waiting: Waiter<Level>[] = [];
  let held = 0;
  /** The turn of the last one that was admitted after a wait. */
  let currentTurn = 0;

  const accountOf = (level: Level, id: string) => accounts.get(level)?.get(id);

  /** The accounts of the holders, each with one more user. */
  function openAccounts(holders: Holders<Level>): Account[] {
    const opened: Account[] = [];
    for (const level of levels) {
      const id = holders[level];
      const ofLevel = accounts.get(level);
      if (id === null || ofLevel === undefined) continue;
      let account = ofLevel.get(id);
      if (account === undefined) {
        const forget = () => void (ofLevel.size > maxIdleAccounts && ofLevel.delete(id));
        account = { held: 0, waiting: 0, users: 0, turn: 0, forget };
        ofLevel.set(id, account);
      }
      account.users += 1;
      opened.push(account);
    }
    return opened;
  }

  function closeAccounts(opened: Account[]): void {
    for (const account of opened) {
      account.users -= 1;
      if (account.users === 0) account.forget();
    }
  }

  /** The level whose limit an amount would break; null when it fits. */
  function findObstacle(holders: Holders<Level>, amount: number): Level | 'pod' | null {
    for (const level of levels) {
      const id = holders[level];
      const ofHolder = id === null ? 0 : (accountOf(level, id)?.held ?? 0);
      if (ofHolder > 0 && ofHolder + amount > limits[level]) return level;
    }
    return held > 0 && held + amount > limits.pod ? 'pod' : null;
  }

  class Taken implements Hold {
    readonly #accounts: Account[];
    #amount = 0;
    #isReleased = false;

    constructor(holders: Holders<Level>, amount: number) {
      this.#accounts = openAccounts(holders);
      this.resize(amount);
    }

    resize(amount: number): void {
      const change = amount - this.#amount;
      if (this.#isReleased || change === 0) return;
      this.#amount = amount;
      held += change;
      for (const account of this.#accounts) account.held += change;
      if (change < 0 && waiting.length > 0) admitWaiting();
    }

    release(): void {
      if (this.#isReleased) return;
      this.resize(0);
      this.#isReleased = true;
      closeAccounts(this.#accounts);
    }
  }

  /**
   * Admits what fits, in order. Nothing is admitted behind a request that waits for the process's
   * limit, or a large amount would wait forever.
   */
  function admitWaiting(): void {
    for (const waiter of [...waiting]) {
      const obstacle = findObstacle(waiter.holders, waiter.amount);
      if (obstacle === 'pod') return;
      if (obstacle !== null) continue;
      waiter.admit();
    }
  }

  /** Returns whether a request waits for the process's limit; a new one must not overtake it. */
  const isPodAwaited = () =>
    waiting.length > 0 && waiting.some(({ holders, amount }) => findObstacle(holders, amount) === 'pod');

  /** @throws BudgetExhausted when so many wait that one more had no chance. */
  function checkQueue(holders: Holders<Level>): void {
    const [first] = levels;
    const id = first === undefined ? null : holders[first];
    const ofHolder = first === undefined || id === null ? 0 : (accountOf(first, id)?.waiting ?? 0);
    const limit =
      first !== undefined && ofHolder >= maxWaiting.each ? first : waiting.length >= maxWaiting.all ? 'pod' : null;
    if (limit === null) return;
    onWaited('refused', limit);
    throw new BudgetExhausted(limit);
  }

  function wait(
    holders: Holders<Level>,
    amount: number,
    obstacle: Level | 'pod',
    client: Ends,
    atMostMs: number,
  ): Promise<Hold> {
    checkQueue(holders);
    const opened = openAccounts(holders);
    return new Promise((resolve, reject) => {
      /**
       * Ends the wait, unless it has ended; others may fit now that this one is not before them.
       */
      const end = (how: 'admitted' | 'refused' | 'gone', limit: Level | 'pod', settle: () => void) => {
        if (!waiting.includes(waiter)) return;
        clearTimeout(timer);
        waiting = waiting.filter((other) => other !== waiter);
        for (const account of opened) account.waiting -= 1;
        closeAccounts(opened);
        onWaited(how, limit);
        settle();
        if (how !== 'admitted') admitWaiting();
      };
      const waiter: Waiter<Level> = {
        holders,
        amount,
        turn: Math.max(currentTurn, ...opened.slice(0, 1).map(({ turn }) => turn + 1)),
        admit: () => {
          currentTurn = waiter.turn;
          end('admitted', obstacle, () => resolve(new Taken(holders, amount)));
        },
      };
      const timer = setTimeout(() => {
        const limit = findObstacle(holders, amount) ?? obstacle;
        end('refused', limit, () => reject(new BudgetExhausted(limit)));
      }, atMostMs);
      const [holder] = opened;
      if (holder !== undefined) holder.turn = waiter.turn;
      waiting.splice(waiting.findLastIndex(({ turn }) => turn <= waiter.turn) + 1, 0, waiter);
      for (const account of opened) account.waiting += 1;
      client.onEnd(() => end('gone', obstacle, () => reject(new ClientGone())));
    });
  }

  return {
    /**
     * Takes a part of the budget: at once where it is free, else after a wait.
     *
     * @param client - whose end ends the wait.
     * @param waitAtMostMs - shortens the wait for one that has waited elsewhere.
     * @returns the hold, or a promise of it, which rejects with BudgetExhausted or ClientGone.
     * @throws BudgetExhausted when too many wait.
     */
    reserve(holders: Holders<Level>, amount: number, client: Ends, waitAtMostMs = waitMs): Hold | Promise<Hold> {
      const obstacle = findObstacle(holders, amount) ?? (isPodAwaited() ? 'pod' : null);
      return obstacle === null ? new Taken(holders, amount) : wait(holders, amount, obstacle, client, waitAtMostMs);
    },

    /** What is held, and how many wait. */
    get state() {
      return { held, waiting: waiting.length };
    },
  };
}
