import path from 'node:path';

/** The example's folder, `test/signature-libraries/<language>`. */
export const getFolder = (language: string) => path.join(import.meta.dirname, language);
