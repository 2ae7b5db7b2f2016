import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import "./global.css";
import { takeTokens } from "./request/take-token.ts";
import { App } from "./shell/app.tsx";

// Before anything is asked for or shown.
takeTokens();

createRoot(document.getElementById("root") as HTMLElement).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
