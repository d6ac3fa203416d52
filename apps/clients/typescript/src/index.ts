export * from './client.ts';
export * from './errors.ts';
export type * from './generated.ts';
export type * from './response.ts';
export type { OrgApiOptions } from './settings.ts';
