export { OrgApi } from './client.ts';
export { OrgApiError, type OrgApiErrorCode } from './errors.ts';
export type * from './generated.ts';
export type * from './response.ts';
export type { OrgApiOptions } from './settings.ts';
