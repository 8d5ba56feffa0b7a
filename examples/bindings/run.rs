// Runs a model on a picture with vertical stripes: run MODEL. rustc run.rs -L native=DIR -l onx
use std::ffi::CString;
use std::os::raw::{c_char, c_void}; // std::ffi has them from Rust 1.64 on, and Debian 12 has 1.63
use std::ptr::{null, null_mut};

#[repr(C)]
struct Memory {
    struct_size: u32,
    dtype: i32,
    rank: u32,
    dims: *const i64,
    strides: *const i64,
    data: *mut c_void,
    size: u64,
    release: Option<extern "C" fn(*mut c_void)>,
    owner: *mut c_void,
}

#[repr(C)]
struct NamedValue {
    name: *const c_char,
    value: *mut c_void,
}

extern "C" {
    fn onx_ctx_new(allocator: *const c_void) -> *mut c_void;
    fn onx_ctx_free(cx: *mut c_void);
    fn onx_diag_get(cx: *const c_void, index: usize) -> *const c_void;
    fn onx_diag_format(diag: *const c_void, buf: *mut c_char, size: usize) -> usize;
    fn onx_session_load(cx: *mut c_void, path: *const c_char, load: *const c_void, options: *const c_void,
                        out: *mut *mut c_void) -> i32;
    fn onx_session_free(session: *mut c_void);
    fn onx_value_wrap(cx: *mut c_void, memory: *const Memory, out: *mut *mut c_void) -> i32;
    fn onx_value_free(value: *mut c_void);
    fn onx_session_run_named(session: *mut c_void, cx: *mut c_void, inputs: *const NamedValue, input_count: u32,
                             outputs: *mut NamedValue, output_count: u32, options: *const c_void) -> i32;
}

struct Context(*mut c_void);
impl Drop for Context {
    fn drop(&mut self) {
        unsafe { onx_ctx_free(self.0) }
    }
}
impl Context {
    fn check(&self, status: i32) -> Result<(), String> {
        if status == 0 {
            return Ok(());
        }
        let mut text = [0u8; 1000];
        let length = unsafe { onx_diag_format(onx_diag_get(self.0, 0), text.as_mut_ptr() as *mut c_char, text.len()) };
        Err(String::from_utf8_lossy(&text[..length.min(text.len() - 1)]).into_owned())
    }
    // A tensor over the elements of the slice, which stays where it is meanwhile.
    fn tensor<'a>(&self, data: &'a mut [f32], dims: &[i64]) -> Result<Value<'a>, String> {
        let memory = Memory {
            struct_size: std::mem::size_of::<Memory>() as u32,
            dtype: 1,
            rank: dims.len() as u32,
            dims: dims.as_ptr(),
            strides: null(),
            data: data.as_mut_ptr() as *mut c_void,
            size: std::mem::size_of_val(data) as u64,
            release: None,
            owner: null_mut(),
        };
        let mut value = null_mut();
        self.check(unsafe { onx_value_wrap(self.0, &memory, &mut value) })?;
        Ok(Value(value, std::marker::PhantomData))
    }
}

struct Value<'a>(*mut c_void, std::marker::PhantomData<&'a mut [f32]>);
impl Drop for Value<'_> {
    fn drop(&mut self) {
        unsafe { onx_value_free(self.0) }
    }
}

fn run(path: &str) -> Result<Vec<f32>, String> {
    let cx = Context(unsafe { onx_ctx_new(null()) });
    let path = CString::new(path).unwrap();
    let (image, probability) = (CString::new("image").unwrap(), CString::new("probability").unwrap());
    let mut session = null_mut();
    cx.check(unsafe { onx_session_load(cx.0, path.as_ptr(), null(), null(), &mut session) })?;
    let mut pixels: Vec<f32> = (0..64).map(|i| if i % 8 % 3 == 1 { 1.0 } else { 0.0 }).collect();
    let mut scores = vec![0f32; 4];
    let status = {
        let x = cx.tensor(&mut pixels, &[1, 1, 8, 8])?;
        let y = cx.tensor(&mut scores, &[1, 4])?;
        let inputs = [NamedValue { name: image.as_ptr(), value: x.0 }];
        let mut outputs = [NamedValue { name: probability.as_ptr(), value: y.0 }];
        unsafe { onx_session_run_named(session, cx.0, inputs.as_ptr(), 1, outputs.as_mut_ptr(), 1, null()) }
    };
    let done = cx.check(status);
    unsafe { onx_session_free(session) };
    done.map(|()| scores)
}

fn main() {
    match run(&std::env::args().nth(1).unwrap_or_default()) {
        Ok(scores) => scores.iter().for_each(|s| println!("{:.3}", s)),
        Err(text) => {
            eprintln!("{}", text);
            std::process::exit(1);
        }
    }
}
