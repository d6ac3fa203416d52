import type { Migration } from '@mikro-orm/migrations';

/** A migration in the list. */
export interface NamedMigration {
  name: string;
  class: typeof Migration & (new (...args: ConstructorParameters<typeof Migration>) => Migration);
  /** Whether it removes what the version before needs. It stays pending until `contract` is set. */
  isContract?: boolean;
}
