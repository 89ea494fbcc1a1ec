// What the engine needs of the host beside its calls; tests put their own in.
var __rewriteRelativeImportExtension = (this && this.__rewriteRelativeImportExtension) || function (path, preserveJsx) {
    if (typeof path === "string" && /^\.\.?\//.test(path)) {
        return path.replace(/\.(tsx)$|((?:\.d)?)((?:\.[^./]+?)?)\.([cm]?)ts$/i, function (m, tsx, d, ext, cm) {
            return tsx ? preserveJsx ? ".jsx" : ".js" : d && (!ext || !cm) ? m : (d + ext + "." + cm.toLowerCase() + "js");
        });
    }
    return path;
};
import { openTranscript } from "./transcript.js";
export const seams = {
    open: openTranscript,
    async compact(params) {
        const name = "openclaw/plugin-sdk/core";
        const sdk = (await import(__rewriteRelativeImportExtension(name)));
        return sdk.delegateCompactionToRuntime(params);
    },
    now: () => performance.now(),
};
