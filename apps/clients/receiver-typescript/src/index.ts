export { type Database, forget, gapsSql, schema, type Transaction } from './database.ts';
export type { OrgEvent } from './events.ts';
export { mysql, postgres, sqlite } from './ports.ts';
export { type Outcome, type ReceiveOptions, receive } from './receive.ts';
export { type Headers, InvalidDeliveryError, verify } from './verify.ts';
