/** Invalid rows of mail for constraints.test.ts. `$org`, `$user` stand for the ids of the test's rows. */
const mail = `insert into mail (organization_id, kind, person_id, address)
  values ('$org', 'owner.add', '$user', 'a@example.org')`;
const changed = (values: string) => `${mail}; update mail set ${values}`;
const notice = (values: string, data = `'{}'`) =>
  `insert into notice (organization_id, kind, subject_id, step, data) values ('$org', ${values}, ${data})`;

export const wrongMailStates: [state: string, constraint: string, statement: string][] = [
  ['a mail of an unknown kind', 'mail_kind_known', changed(`kind = 'newsletter'`)],
  ['a mail to several addresses', 'mail_address_form', changed(`address = 'a@example.org,b@example.org'`)],
  ['a mail about a text', 'mail_about_form', changed(`about = 'the Rossi family'`)],
  [
    'an unknown state of a mail',
    'mail_state_known',
    changed(`state = 'bounced', due_at = null, address = null, settled_at = now()`),
  ],
  ['a reply with an address', 'mail_reply_form', changed(`reply = '550 a@example.org'`)],
  [
    'a settled mail in its queue',
    'mail_ready_waits',
    changed(`state = 'sent', due_at = null, address = null, settled_at = now(), is_ready = true`),
  ],
  ['a mail that waits for ever', 'mail_waiting_is_due', changed(`due_at = null`)],
  ['a mail that waits without an address', 'mail_waiting_has_address', changed(`address = null`)],
  [
    'a settled mail with its address',
    'mail_waiting_has_address',
    changed(`state = 'sent', due_at = null, settled_at = now()`),
  ],
  [
    'a settled mail without its time',
    'mail_settled_has_time',
    changed(`state = 'sent', due_at = null, address = null`),
  ],
  [
    'a settled mail with its token',
    'mail_settled_has_no_token',
    changed(`state = 'sent', due_at = null, address = null, settled_at = now(), sealed = 'x'`),
  ],
  [
    'two mails about what continues',
    'mail_merged',
    `${mail}; update mail set kind = 'key.expiring'; ${mail};
    update mail set kind = 'key.expiring'`,
  ],
  [
    'two mails about a key that was reported twice',
    'mail_repeated',
    `${mail}; update mail set kind = 'key.report', about = repeat('0', 36); ${mail};
    update mail set kind = 'key.report', about = repeat('0', 36)`,
  ],
  [
    'two mails about two downloads of the audit log',
    'mail_repeated',
    `${mail}; update mail set kind = 'audit_log.download'; ${mail}; update mail set kind = 'audit_log.download'`,
  ],
  ['a notice of an unknown kind', 'notice_kind_known', notice(`'key.create', gen_random_uuid(), 'x'`)],
  [
    'a notice that is an event without data',
    'notice_event_has_data',
    notice(`'key.expiring', gen_random_uuid(), 'x'`, 'null'),
  ],
  ['a notice without a step', 'notice_step_length', notice(`'key.expiring', gen_random_uuid(), ''`)],
  [
    'a mail that no member may turn off, turned off',
    'mail_opt_out_kind_known',
    `insert into mail_opt_out values ('$org', '$user', 'password.change')`,
  ],
];
