import { fileURLToPath } from "node:url";

/** The directory of the documentation. */
export const DOCS: string = fileURLToPath(new URL("../../docs/", import.meta.url));

/** The directory of the built studio, which `npm run build` makes. */
export const STUDIO: string = fileURLToPath(new URL("../../dist/studio/", import.meta.url));
