import { auditLog } from './audit-log.ts';
import type { Noun } from './command.ts';
import { delivery } from './delivery.ts';
import { doctor } from './doctor/doctor.ts';
import { family } from './family.ts';
import { key } from './key.ts';
import { ledger } from './ledger.ts';
import { mail } from './mail.ts';
import { org } from './org.ts';
import { person } from './person.ts';
import { probe } from './probe.ts';
import { redelivery } from './redelivery.ts';
import { secrets } from './secrets.ts';
import { webhook } from './webhook.ts';

/** The commands of `orgctl`, in the order of its help. */
export const nouns: readonly Noun[] = [
  org,
  person,
  family,
  webhook,
  delivery,
  redelivery,
  ledger,
  auditLog,
  mail,
  key,
  secrets,
  probe,
  doctor,
];
