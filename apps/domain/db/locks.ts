import { LockMode } from '@mikro-orm/core';

/** Loads a row for a change (`for no key update`, see `driver.ts`): other changes wait for it. */
export const writeLock = { lockMode: LockMode.PESSIMISTIC_WRITE } as const;

/** Loads a row that is to stay as it is (`for share`): changes wait, other readers do not. */
export const shareLock = { lockMode: LockMode.PESSIMISTIC_READ } as const;
