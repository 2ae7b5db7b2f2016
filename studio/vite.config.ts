import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

// Vite reads the default export.
export default defineConfig({
  root: here("."),
  // Relative, as a proxy may serve the studio under a path.
  base: "./",
  plugins: [react()],
  resolve: { alias: { "skein/client": here("../src/http/client/index.ts") } },
  build: { outDir: here("../dist/studio"), emptyOutDir: true, cssCodeSplit: false, chunkSizeWarningLimit: 900 },
  server: { proxy: { "/api": "http://127.0.0.1:4117", "/openapi.json": "http://127.0.0.1:4117" } },
});
