import type { Migration } from '@mikro-orm/migrations';

/** A migration in the list. */
export interface NamedMigration {
  name: string;
  class: typeof Migration & (new (...args: ConstructorParameters<typeof Migration>) => Migration);
  /**
   * Whether it removes what the version before needs. It stays pending until `contract` asks for
   * it. Any other migration is an expand migration: both versions work with it.
   */
  isContract?: boolean;
}
