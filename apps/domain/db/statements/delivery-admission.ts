/** True while deliveries are admitted. As a scalar subquery it is read once per statement. */
export const isAdmittingSql = /* sql */ `(select a.state = 'running' from delivery_admission a)`;
