import { html, useState, useRef, useEffect } from '../lib/html.js'
import { Failure } from './small.js'
import { visible } from '../lib/visible.js'

// Confirm says what will happen and does it only then. With `typed`, that text
// has to be typed first.
export function Confirm({ title, children, action, danger, typed, run, close }) {
  const dialog = useRef()
  const [text, setText] = useState('')
  const [state, set] = useState({ busy: false, error: null })
  useEffect(() => {
    const shown = dialog.current
    shown.showModal()
    return () => shown.close() // which gives the focus back; taking it out of the page does not
  }, [])

  const go = async (event) => {
    event.preventDefault()
    set({ busy: true, error: null })
    try {
      await run()
      close()
    } catch (error) {
      set({ busy: false, error })
    }
  }
  // Escape does not close what is under way: its answer would be lost.
  const cancel = (event) => { event.preventDefault(); if (!state.busy) close() }
  return html`
    <dialog ref=${dialog} onCancel=${cancel} aria-labelledby="confirm-title">
      <form onSubmit=${go}>
        <h2 id="confirm-title">${title}</h2>
        <div class="said-by-us">${children}</div>
        ${typed !== undefined && html`
          <label class="field"><span>Type <bdi class="key">${visible(typed)}</bdi> to go on</span>
            <input name="typed" value=${text} onInput=${(e) => setText(e.target.value)} autocomplete="off" spellcheck=${false} autofocus /></label>`}
        <${Failure} error=${state.error} />
        <div class="buttons">
          <button type="button" onClick=${cancel} disabled=${state.busy}>Cancel</button>
          <button class=${danger ? 'danger' : 'primary'} disabled=${state.busy || (typed !== undefined && text !== typed)}>
            ${state.busy ? 'Working…' : action}</button>
        </div>
      </form>
    </dialog>`
}

// useConfirm gives a place for the dialog and a way to open it.
export function useConfirm() {
  const [asked, ask] = useState(null)
  return [asked && html`<${Confirm} ...${asked} close=${() => ask(null)} />`, ask]
}
