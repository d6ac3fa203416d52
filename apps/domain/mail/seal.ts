/** Names a mail's row for the seal of its token. */
export const mailRow = (mailId: string): string => `mail/${mailId}`;
