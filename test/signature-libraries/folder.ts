import path from 'node:path';

/** The example's folder, `test/signature-libraries/<language>`. */
export const folderOf = (language: string) => path.join(import.meta.dirname, language);
