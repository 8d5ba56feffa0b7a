// onx.hpp - onx for C++11 in one header: handles free themselves, failures are exceptions. What is not here is called as
// in C, on the pointers that get() gives.
#ifndef ONX_HPP
#define ONX_HPP

#include <onx/onx.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace onx
{

class error : public std::runtime_error
{
  public:
    error(onx_status status, const std::string &what) : std::runtime_error(what), status_(status) {}
    onx_status status() const { return status_; }

  private:
    onx_status status_;
};

template <typename T, void (*release)(T *)> struct deleter {
    void operator()(T *p) const { release(p); }
};
template <typename T, void (*release)(T *)> using handle = std::unique_ptr<T, deleter<T, release>>;

// A context, for one thread at a time. It outlives what is made with it.
class context
{
  public:
    context() : cx_(onx_ctx_new(nullptr))
    {
        if (!cx_)
            throw std::bad_alloc();
    }
    onx_ctx *get() const { return cx_.get(); }

    // Throws what the context says of a call that failed.
    void check(onx_status status) const
    {
        if (status == ONX_OK)
            return;
        std::string text = onx_status_text(status);
        if (onx_diag_count(get())) {
            const onx_diag *diag = onx_diag_get(get(), 0);
            text.resize(onx_diag_format(diag, nullptr, 0) + 1);
            onx_diag_format(diag, &text[0], text.size());
            text.pop_back();
        }
        onx_diag_clear(get());
        throw error(status, text);
    }

  private:
    handle<onx_ctx, onx_ctx_free> cx_;
};

// A tensor; its elements are its own or those of a vector that outlives it.
class value
{
  public:
    explicit value(onx_value *v) : v_(v) {}
    value(const context &cx, std::vector<float> &data, const std::vector<int64_t> &dims)
    {
        onx_memory memory = onx_memory();
        memory.dtype = ONX_FLOAT;
        memory.rank = static_cast<uint32_t>(dims.size());
        memory.dims = dims.data();
        memory.data = data.data();
        memory.size = data.size() * sizeof(float);
        onx_value *made;
        cx.check(onx_value_wrap(cx.get(), &memory, &made));
        v_.reset(made);
    }
    onx_value *get() const { return v_.get(); }
    onx_value *release() { return v_.release(); }
    std::vector<int64_t> dims() const { return std::vector<int64_t>(v_->dims, v_->dims + v_->rank); }
    const float *floats() const { return v_->dtype == ONX_FLOAT ? static_cast<const float *>(v_->data) : nullptr; }
    uint64_t count() const { return v_->count; }

  private:
    handle<onx_value, onx_value_free> v_;
};

// A session; any number of threads may run it, each with a context of its own.
class session
{
  public:
    session(const context &cx, const std::string &path)
    {
        onx_session *made;
        cx.check(onx_session_load(cx.get(), path.c_str(), nullptr, nullptr, &made));
        s_.reset(made);
    }
    std::string input_name(uint32_t index) const { return text(onx_session_input(s_.get(), index).name); }
    std::string output_name(uint32_t index) const { return text(onx_session_output(s_.get(), index).name); }
    uint32_t output_count() const { return onx_session_output_count(s_.get()); }

    std::vector<value> run(const context &cx, const std::vector<const onx_value *> &inputs)
    {
        if (inputs.size() != onx_session_input_count(s_.get()))
            throw error(ONX_E_MISUSE, "a value per input is needed");
        std::vector<onx_value *> made(output_count() + 1u, nullptr);
        const onx_status status = onx_session_run(s_.get(), cx.get(), inputs.data(), made.data());
        std::vector<value> outputs;
        outputs.reserve(made.size());
        for (uint32_t i = 0; i < output_count(); i++)
            outputs.emplace_back(made[i]);
        cx.check(status);
        return outputs;
    }

  private:
    static std::string text(onx_str s) { return s.len ? std::string(s.ptr, s.len) : std::string(); }
    handle<onx_session, onx_session_free> s_;
};

} // namespace onx
#endif
