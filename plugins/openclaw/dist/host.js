// What this plugin uses of the host's plugin API and of the context engine
// contract, in both versions it serves. The host ships no types that a plugin
// could depend on without installing the host, so they are written down here.
export {};
