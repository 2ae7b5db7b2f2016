import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import "./global.css";
import { acceptUrlTokens } from "./request/url-token.ts";
import { App } from "./shell/app.tsx";

// Before the first request and before the first rendering, so that the token is used and then hidden.
acceptUrlTokens();

createRoot(document.getElementById("root") as HTMLElement).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
