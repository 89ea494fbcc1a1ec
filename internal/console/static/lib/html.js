// The one place that names the library, so that another version is one line.
export {
  html, render, useState, useEffect, useLayoutEffect, useRef, useMemo, useCallback, useErrorBoundary,
} from '../vendor/htm-preact.js'
