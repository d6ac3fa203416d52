import { LockMode } from '@mikro-orm/core';

/** Loads a row in order to change it (`for no key update`, see `driver.ts`): other changes wait. */
export const writeLock = { lockMode: LockMode.PESSIMISTIC_WRITE } as const;

/** Loads a row that must not change (`for share`): changes wait, other readers do not. */
export const shareLock = { lockMode: LockMode.PESSIMISTIC_READ } as const;
