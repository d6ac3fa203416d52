import type { EntityManager } from '@mikro-orm/postgresql';
import { Refused } from '#domain/contract/refused.ts';
import type { AllowList } from '#domain/webhooks/address/addresses.ts';
import { type SealingKeys, SecretNotUnsealed } from '#domain/webhooks/seal.ts';
import { ReconcileFailed } from './controller/contract.ts';
import { type Reason, reasons } from './controller/reasons.ts';

/** What the Region of the namespace gives to the other kinds. */
export interface RegionAccess {
  /** Ids of organizations; `*` stands for all. */
  allowedOrganizations: readonly string[];
  /** Over the login of the role `org_api_operator`. */
  em: EntityManager;
  sealingKeys: SealingKeys;
  /** Addresses that webhooks may use although they are not public. */
  allow: AllowList;
}

/**
 * Returns the access to the namespace's Region. @throws ReconcileFailed when there is no Region, or
 * its database or secrets cannot be reached.
 */
export type GetRegion = () => Promise<RegionAccess>;

/** Whether the Region allows webhooks of an organization. */
export const isAllowed = ({ allowedOrganizations }: RegionAccess, organizationId: string): boolean =>
  allowedOrganizations.includes('*') || allowedOrganizations.includes(organizationId);

/**
 * Turns a refusal of the domain into the reason of a condition: `url_refused` → `UrlRefused`, and
 * `Refused` when the list has none of that name. Any other error is thrown as it is.
 */
export async function explainRefusals<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (cause) {
    if (cause instanceof Refused) throw new ReconcileFailed(reasonOf(cause.reason), cause.message, { cause });
    if (cause instanceof SecretNotUnsealed) throw new ReconcileFailed('SecretNotUnsealed', cause.message, { cause });
    throw cause;
  }
}

function reasonOf(refusal: string): Reason {
  const name = refusal.replaceAll(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase());
  return reasons.find((reason) => reason === name) ?? 'Refused';
}
