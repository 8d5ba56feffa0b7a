/* op_rules.h - the type and shape inference rules that rows refer to, by family; op/rules defines them. */
#ifndef ONXI_OP_RULES_H
#define ONXI_OP_RULES_H

#include "op/op.h"

#define RULE(name) onx_status onxi_rule_##name(onxi_call *call)

/* Output 0 gets the shape of inputs first..last-1 broadcast together. */
onx_status onxi_broadcast_inputs(onxi_call *call, uint32_t first, uint32_t last, uint32_t output);

/* Propagated values of more than one dimension (op/rules/value.c); the shape of output 0 has to be set before. */
void onxi_carry_reshaped(onxi_call *call); /* of any rank: the same elements */
void onxi_carry_transposed(onxi_call *call, const int64_t *perm);
void onxi_carry_expanded(onxi_call *call);
/* Starts and steps of every axis. */
void onxi_carry_sliced(onxi_call *call, const int64_t *starts, const int64_t *steps);
void onxi_carry_joined(onxi_call *call, uint32_t axis);
/* One element of a result. Arithmetic that leaves 64 bits is unknown, because a run wraps. */
onxi_dim onxi_call_step(onxi_call *call, onxi_dim (*step)(onxi_dims *dims, onxi_dim a, onxi_dim b), onxi_dim a,
                        onxi_dim b);
void onxi_carry_pairs(onxi_call *call, onxi_dim (*step)(onxi_dims *dims, onxi_dim a, onxi_dim b));
void onxi_carry_chosen(onxi_call *call);
void onxi_carry_gathered(onxi_call *call, uint32_t axis);
void onxi_carry_gathered_tuples(onxi_call *call);
void onxi_carry_scattered(onxi_call *call, uint32_t axis);
void onxi_carry_scattered_tuples(onxi_call *call);
/* The number of nonzero elements among the first `limit`; false if that is not known. */
bool onxi_count_set(onxi_call *call, uint32_t input, uint32_t limit, uint32_t *out);
void onxi_carry_positions(onxi_call *call);
void onxi_carry_kept(onxi_call *call);

/* Can an element of that type be this integer? A number that a type does not hold wraps or is rounded in a run, so what
 * follows from it is unknown. onxi_call_run forgets such elements of outputs; a rule asks about its intermediate
 * results. */
bool onxi_dtype_holds(int dtype, int64_t number);
/* The same for an element, which is ONXI_DIM_UNKNOWN otherwise; for an expression only if it has to be proven. */
onxi_dim onxi_call_held(const onxi_call *call, int dtype, onxi_dim d);

/* floor(size * scale), if it is known. */
onxi_dim onxi_scaled(onxi_call *call, onxi_dim size, float scale);
/* The same of an expression if the product is rounded to float first: only if that changes no size that occurs. */
onxi_dim onxi_scaled_in_float(onxi_call *call, onxi_dim size, float scale);

/* element by element */
RULE(unary);
RULE(identity);
RULE(neg);
RULE(abs);
RULE(relu);
RULE(not );
RULE(floor);
RULE(round);
RULE(clip);
RULE(and);
RULE(or);
RULE(xor);
RULE(pow);
RULE(sqrt);
RULE(axis);
RULE(broadcast);
RULE(pair);
RULE(prelu);
RULE(add);
RULE(sub);
RULE(mul);
RULE(div);
RULE(mod);
RULE(equal);
RULE(greater);
RULE(greater_or_equal);
RULE(less);
RULE(less_or_equal);
RULE(max);
RULE(min);
RULE(sum);
RULE(mean);
RULE(where);

/* tensor: shape */
/* Output `output` has the rank given by the length of the shape input. */
onx_status onxi_rank_from_shape_input(onxi_call *call, uint32_t input, uint32_t output);
/* Sets the flags of the axes in a new array of `rank` flags; fails for an axis that is out of range or, if `once`,
 * given twice. */
onx_status onxi_call_mark_axes(onxi_call *call, const int64_t *axes, uint32_t count, uint32_t rank, bool once,
                               bool **out);
RULE(cast);
RULE(cast_like);
RULE(bit_cast);
RULE(shape);
RULE(size);
RULE(reshape);
RULE(flatten);
RULE(squeeze);
RULE(unsqueeze);
RULE(transpose);
RULE(expand);
RULE(tile);
RULE(concat);
RULE(split);
RULE(depth_to_space);
RULE(space_to_depth);

/* math */
RULE(matmul);
RULE(qlinear_matmul);
RULE(gemm);
RULE(cumulate);
RULE(det);
RULE(swiglu);
RULE(einsum);
RULE(nll_loss);
RULE(softmax_cross_entropy);
RULE(window);
RULE(mel_weight_matrix);
RULE(dft);
RULE(stft);

/* controlflow */
/* The type that holds for a value of either type a or type b; fails if they differ in more than shape. */
onx_status onxi_call_join(onxi_call *call, const onxi_type *a, const onxi_type *b, const char *what, uint32_t index,
                          onxi_type *out);
/* Fails unless the body (the attribute of that name) has `count` inputs; it may have more that are also
 * initializers. */
onx_status onxi_call_body_takes(onxi_call *call, const onx_graph *body, const char *name, uint32_t count);
RULE(if);
RULE(loop);
RULE(scan);

/* reduction */
RULE(reduce);
RULE(arg_reduce);

/* tensor: index */
RULE(gather);
RULE(gather_elements);
RULE(gather_nd);
RULE(slice);
RULE(scatter);
RULE(scatter_nd);
RULE(tensor_scatter);
RULE(non_zero);
RULE(compress);
RULE(unique);
RULE(one_hot);
RULE(top_k);
RULE(trilu);
RULE(reverse_sequence);

/* tensor: resample */
RULE(upsample);
RULE(resize);
RULE(pad);
RULE(center_crop_pad);
RULE(grid_sample);
RULE(affine_grid);

/* nn: layers */
RULE(batch_normalization);
RULE(dropout);
RULE(layer_normalization);
RULE(rms_normalization);
RULE(instance_normalization);
RULE(group_normalization);
RULE(rotary_embedding);
RULE(tf_idf);

/* nn: attention */
RULE(attention);
RULE(linear_attention);
RULE(causal_conv);

/* generator */
RULE(constant);
RULE(constant_of_shape);
RULE(random_like);
RULE(eye_like);
RULE(random);
RULE(multinomial);
RULE(range);

/* rnn */
RULE(recurrent);

/* sequence, optional */
RULE(sequence_empty);
RULE(sequence_construct);
RULE(sequence_insert);
RULE(sequence_erase);
RULE(sequence_at);
RULE(sequence_length);
RULE(split_to_sequence);
RULE(concat_from_sequence);
RULE(sequence_map);
RULE(optional);
RULE(optional_has_element);
RULE(optional_get_element);

/* text, image */
RULE(string_concat);
RULE(regex_full_match);
RULE(string_split);
RULE(string_normalizer);
RULE(image_decoder);

/* quantization */
RULE(quantize_linear);
RULE(dequantize_linear);
RULE(dynamic_quantize_linear);

/* object_detection */
RULE(roi_align);
RULE(non_max_suppression);

/* training, preview */
RULE(optimizer_3);
RULE(optimizer_4);
RULE(gradient);
RULE(flex_attention);

/* traditionalml */
RULE(array_feature_extractor);
RULE(ml_scaler);
RULE(one_hot_encoder);
RULE(feature_vectorizer);
RULE(cast_map);
RULE(dict_vectorizer);
RULE(category_mapper);
RULE(label_encoder);
RULE(zip_map);
RULE(linear_classifier);
RULE(linear_regressor);
RULE(svm_classifier);
RULE(svm_regressor);
RULE(tree_ensemble_classifier);
RULE(tree_ensemble_regressor);
RULE(tree_ensemble);

/* nn: sliding windows */
RULE(pool);
RULE(conv);
RULE(conv_integer);
RULE(deform_conv);
RULE(qlinear_conv);
RULE(global_pool);
RULE(conv_transpose);
RULE(max_unpool);
RULE(max_roi_pool);
RULE(col2im);

#undef RULE

#endif
