// Generated from docs/openapi.json by scripts/generate.mjs. DO NOT EDIT.
export {};
