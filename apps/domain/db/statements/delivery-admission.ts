/**
 * True while deliveries are admitted. A scalar subquery: PostgreSQL reads the row once per
 * statement, and nothing waits for it.
 */
export const isAdmittingSql = /* sql */ `(select a.state = 'running' from delivery_admission a)`;
